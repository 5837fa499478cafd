package tickwire.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import quickfix.Acceptor;
import quickfix.Application;
import quickfix.Connector;
import quickfix.DefaultMessageFactory;
import quickfix.FieldNotFound;
import quickfix.FileStoreFactory;
import quickfix.Message;
import quickfix.SLF4JLogFactory;
import quickfix.Session;
import quickfix.SessionID;
import quickfix.SessionSettings;
import quickfix.SocketAcceptor;
import quickfix.SocketInitiator;

/**
 * QuickFIX/J, driven by lines on standard input: {@code send 35=D|11=...}, {@code reset}, {@code logout}, {@code logon}, {@code quit}.
 * What happens goes to standard output, a line each: {@code ready}, {@code logon}, {@code logout}, {@code app MESSAGE},
 * {@code admin MESSAGE}. An acceptor answers every order with an execution report.
 */
public final class Peer implements Application {
    private static final char SOH = '\u0001';
    private final PrintStream out = System.out;
    private final boolean answers;

    private Peer(boolean answers) {
        this.answers = answers;
    }

    private synchronized void say(String line) {
        out.println(line.replace(SOH, '|'));
        out.flush();
    }

    @Override
    public void onCreate(SessionID id) {}

    @Override
    public void onLogon(SessionID id) {
        say("logon");
    }

    @Override
    public void onLogout(SessionID id) {
        say("logout");
    }

    @Override
    public void toAdmin(Message message, SessionID id) {
        try {
            // A reset that changes nothing: the number after this message's own.
            if (message.getHeader().getString(35).equals("4") && !message.isSetField(123)) {
                message.setString(123, "N");
                message.setInt(36, message.getHeader().getInt(34) + 1);
            }
        } catch (FieldNotFound e) {
            say("error " + e);
        }
    }

    @Override
    public void fromAdmin(Message message, SessionID id) {
        say("admin " + message);
    }

    @Override
    public void toApp(Message message, SessionID id) {}

    @Override
    public void fromApp(Message message, SessionID id) {
        say("app " + message);
        try {
            if (answers && message.getHeader().getString(35).equals("D")) {
                Message report = new Message();
                report.getHeader().setString(35, "8");
                String order = message.getString(11);
                report.setString(37, "O" + order);
                report.setString(11, order);
                report.setString(17, "E" + order);
                if (id.getBeginString().equals("FIX.4.2")) {
                    report.setString(20, "0");
                }
                report.setString(150, "0");
                report.setString(39, "0");
                report.setString(55, message.getString(55));
                report.setString(54, message.getString(54));
                report.setString(38, message.getString(38));
                report.setString(151, message.getString(38));
                report.setString(14, "0");
                report.setString(6, "0");
                Session.sendToTarget(report, id);
            }
        } catch (Exception e) {
            say("error " + e);
        }
    }

    private static Message parse(String text) {
        Message message = new Message();
        for (String field : text.split("\\|")) {
            int at = field.indexOf('=');
            int tag = Integer.parseInt(field.substring(0, at));
            (tag == 35 ? message.getHeader() : message).setString(tag, field.substring(at + 1));
        }
        return message;
    }

    public static void main(String[] args) throws Exception {
        boolean isAcceptor = args[0].equals("acceptor");
        SessionSettings settings = new SessionSettings(args[1]);
        Peer peer = new Peer(isAcceptor);
        FileStoreFactory stores = new FileStoreFactory(settings);
        Connector connector = isAcceptor
            ? new SocketAcceptor(peer, stores, settings, new SLF4JLogFactory(settings), new DefaultMessageFactory())
            : new SocketInitiator(peer, stores, settings, new SLF4JLogFactory(settings), new DefaultMessageFactory());
        connector.start();
        peer.say("ready");
        SessionID id = connector.getSessions().get(0);
        Session session = Session.lookupSession(id);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null && !line.equals("quit"); line = in.readLine()) {
            if (line.startsWith("send ")) {
                Session.sendToTarget(parse(line.substring(5)), id);
            } else if (line.equals("reset")) {
                session.send(parse("35=4|36=1"));
            } else if (line.equals("logout")) {
                session.logout();
            } else if (line.equals("logon")) {
                session.logon();
            } else {
                peer.say("error unknown command: " + line);
            }
        }
        connector.stop();
        System.exit(0);
    }
}
