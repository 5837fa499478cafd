package tickwire.interop;

import java.io.BufferedOutputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.concurrent.CountDownLatch;
import quickfix.Application;
import quickfix.DefaultMessageFactory;
import quickfix.FieldNotFound;
import quickfix.FileStoreFactory;
import quickfix.Group;
import quickfix.Log;
import quickfix.LogFactory;
import quickfix.MemoryStoreFactory;
import quickfix.Message;
import quickfix.Session;
import quickfix.SessionID;
import quickfix.SessionNotFound;
import quickfix.SessionSettings;
import quickfix.SocketInitiator;
import quickfix.field.TransactTime;

/**
 * The trader of {@code tickwire lab run fix} with QuickFIX/J: what it does, and what it writes down, is in
 * apps/tickwire/src/fix/rig/trader.rs and stamps.rs. Built by {@code cargo xtask lab-peers}; the lab starts it with the same words
 * as the others: CONFIG STAMPS KEEP-EVERY KEEP-AT-MOST tsc|kernel CORE|-. No Java program reads the time stamp counter: its stamps
 * are nanoseconds of the real-time clock, and its file says so. It is not pinned: a virtual machine has threads beside the engine's.
 */
public final class Trader implements Application {
    /** Numbers of a record. */
    private static final int FIELDS = 7;

    private final long keepEvery;
    private final int room;
    /** Records one behind the other. */
    private final long[] kept;
    private int count;
    private final ArrayDeque<Integer> open = new ArrayDeque<>(1 << 16);
    private final CountDownLatch over = new CountDownLatch(1);
    private SessionID market;
    private SessionID venue;
    private int loggedOn;
    private String offer = "";
    private long orders;
    private volatile long faults;
    /** When bytes of a session came last. */
    private volatile long marketIn;
    private volatile long venueIn;
    /** From System.nanoTime() to the real-time clock. */
    private final long toRealTime;

    private Trader(long keepEvery, int room) {
        this.keepEvery = keepEvery;
        this.room = room;
        this.kept = new long[room * FIELDS];
        long before = System.nanoTime();
        Instant now = Instant.now();
        long after = System.nanoTime();
        toRealTime = now.getEpochSecond() * 1_000_000_000L + now.getNano() - (before + (after - before) / 2);
    }

    private long now() {
        return System.nanoTime() + toRealTime;
    }

    @Override
    public void onCreate(SessionID id) {
        if (id.getTargetCompID().equals("MARKET")) {
            market = id;
        } else {
            venue = id;
        }
    }

    @Override
    public synchronized void onLogon(SessionID id) {
        // Reports must have where to come from before the first order.
        if (++loggedOn == 2) {
            try {
                subscribe();
            } catch (SessionNotFound e) {
                faults++;
            }
        }
    }

    @Override
    public synchronized void onLogout(SessionID id) {
        // Every report came before it, on the same connection.
        if (id.equals(venue) && loggedOn >= 2) {
            over.countDown();
        }
    }

    @Override
    public void toAdmin(Message message, SessionID id) {}

    @Override
    public void fromAdmin(Message message, SessionID id) {}

    @Override
    public void toApp(Message message, SessionID id) {}

    @Override
    public void fromApp(Message message, SessionID id) throws FieldNotFound {
        long handed = now();
        if (id.equals(market)) {
            onMarket(message, handed);
        } else {
            onReport(message, handed);
        }
    }

    private void subscribe() throws SessionNotFound {
        Message request = new Message();
        request.getHeader().setString(35, "V");
        request.setString(262, "1");
        request.setChar(263, '1');
        request.setInt(264, 5);
        request.setInt(265, 1);
        for (char type : new char[] {'0', '1'}) {
            Group types = new Group(267, 269);
            types.setChar(269, type);
            request.addGroup(types);
        }
        Group symbols = new Group(146, 55);
        symbols.setString(55, "WIRE");
        request.addGroup(symbols);
        Session.sendToTarget(request, market);
    }

    /** The price of the best offer as this message has it, in its own text; empty if it says nothing of it. */
    private static String best(Message message, boolean hasLevels) throws FieldNotFound {
        String price = "";
        for (Group entry : message.getGroups(268)) {
            if (!entry.getString(269).equals("1") || hasLevels && !entry.getString(290).equals("1")) {
                continue;
            }
            price = entry.getString(270);
        }
        return price;
    }

    private void onMarket(Message message, long handed) throws FieldNotFound {
        String type = message.getHeader().getString(35);
        if (type.equals("W")) {
            offer = best(message, false);
            return;
        }
        if (!type.equals("X")) {
            faults++;
            return;
        }
        String price = best(message, true);
        if (price.isEmpty() || price.equals(offer)) {
            return;
        }
        offer = price;
        long decided = now();
        String seq = message.getHeader().getString(34);
        Message order = new Message();
        order.getHeader().setString(35, "D");
        order.setString(11, seq);
        order.setString(1, "ACCOUNT-0042");
        order.setChar(21, '1');
        order.setString(55, "WIRE");
        order.setChar(54, '1');
        order.setField(new TransactTime());
        order.setString(38, "100");
        order.setChar(40, '2');
        order.setString(44, price);
        order.setChar(59, '0');
        long came = marketIn;
        try {
            Session.sendToTarget(order, venue);
        } catch (SessionNotFound e) {
            faults++;
        }
        long sent = now();
        if (orders++ % keepEvery == 0 && count < room) {
            open.add(count);
            long[] record = {Long.parseLong(seq), came, handed, decided, sent, 0, 0};
            System.arraycopy(record, 0, kept, count * FIELDS, FIELDS);
            count++;
        }
    }

    private void onReport(Message message, long handed) throws FieldNotFound {
        long seq = Long.parseLong(message.getString(11));
        while (!open.isEmpty() && kept[open.peek() * FIELDS] <= seq) {
            int at = open.poll() * FIELDS;
            if (kept[at] == seq) {
                kept[at + 5] = venueIn;
                kept[at + 6] = handed;
            }
        }
    }

    private void write(Path path) throws java.io.IOException {
        try (OutputStream out = new BufferedOutputStream(Files.newOutputStream(path))) {
            out.write("TWSTMPRT".getBytes(StandardCharsets.US_ASCII));
            ByteBuffer record = ByteBuffer.allocate(8 * FIELDS).order(ByteOrder.LITTLE_ENDIAN);
            for (int at = 0; at < count; at++) {
                record.clear();
                for (int field = 0; field < FIELDS; field++) {
                    record.putLong(kept[at * FIELDS + field]);
                }
                out.write(record.array());
            }
        }
    }

    /** The call for an incoming message is the earliest moment that the engine shows. */
    private final class Noting implements Log {
        private final boolean isMarket;

        private Noting(boolean isMarket) {
            this.isMarket = isMarket;
        }

        @Override
        public void clear() {}

        @Override
        public void onIncoming(String message) {
            if (isMarket) {
                marketIn = now();
            } else {
                venueIn = now();
            }
        }

        @Override
        public void onOutgoing(String message) {}

        @Override
        public void onEvent(String text) {
            System.err.println(text);
        }

        @Override
        public void onErrorEvent(String text) {
            System.err.println(text);
        }
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 6) {
            System.err.println("usage: quickfixj-trader CONFIG STAMPS KEEP-EVERY KEEP-AT-MOST tsc|kernel CORE|-");
            System.exit(2);
        }
        SessionSettings settings = new SessionSettings(args[0]);
        Trader trader = new Trader(Long.parseLong(args[2]), Integer.parseInt(args[3]));
        var stores = settings.isSetting("FileStorePath") ? new FileStoreFactory(settings) : new MemoryStoreFactory();
        LogFactory logs = id -> trader.new Noting(id.getTargetCompID().equals("MARKET"));
        SocketInitiator initiator = new SocketInitiator(trader, stores, settings, logs, new DefaultMessageFactory());
        initiator.start();
        trader.over.await();
        initiator.stop(true);
        trader.write(Path.of(args[1]));
        System.exit(trader.faults == 0 ? 0 : 1);
    }
}
