// Plays a stimulus into the simulated core and writes down what it did; it judges nothing. Both are written and read by
// the crate tickwire-cosim, little-endian, without padding.
//
// Stimulus; frames of a line and writes are in order of cycle, one whose cycle has passed comes at once:
//   'F' u64 cycle of the first word, u8 line, u8 bad FCS, u16 length, bytes
//   'W' u64 cycle, u8 address, u32 value
//   'S' u64 clocks: runs so many, and until everything was written; then says so
//   'R' u8 address: runs until everything was written, and reads a register
//   'Q' u64 cycle: runs until then, reads every register, and ends
// Record:
//   'B' u64 cycle, u64 seq, u8 live, u8 has bid, u32 price, u64 qty, u8 has ask, u32 price, u64 qty
//   'L' u64 seq, u8 ask, u8 far, u32 price, u64 qty, u16 orders
//   'P' u64 cycle, u64 seq: an order passed the gate; 'X' u64 cycle, u64 seq: it was stopped
//   'T' u64 cycle of the first word, u16 length, bytes: a frame
//   'R' u8 address, u32 value: a register
//   'S' u64 cycle: so far
//
// core_bench STIMULUS RECORD [PERCENT]: in so many of a hundred clocks the transmitter is not ready. `-` for both: the
// stimulus comes by standard input, the record goes to standard output, to be read whenever it says 'R' or 'S'.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "Vcore.h"
#include "verilated.h"

namespace {

[[noreturn]] void fail(const char *what) {
    std::fprintf(stderr, "%s\n", what);
    std::exit(2);
}

struct Reader {
    std::FILE *file;
    // Whether there is another record.
    bool get_kind(uint8_t &kind) { return std::fread(&kind, 1, 1, file) == 1; }
    template <class T> T get() {
        T value{};
        get(&value, sizeof(T));
        return value;
    }
    void get(void *to, size_t size) {
        if (std::fread(to, 1, size, file) != size) fail("the stimulus ends in the middle of a record");
    }
};

struct Writer {
    std::FILE *file;
    template <class T> void put(T value) { std::fwrite(&value, sizeof(T), 1, file); }
    void put(const std::vector<uint8_t> &bytes) { std::fwrite(bytes.data(), 1, bytes.size(), file); }
};

struct Frame {
    uint64_t cycle;
    bool bad;
    std::vector<uint8_t> bytes;
};

struct Write {
    uint64_t cycle;
    uint8_t address;
    uint32_t value;
};

std::FILE *opened(const char *name, const char *how, std::FILE *standard) {
    if (std::strcmp(name, "-") == 0) return standard;
    std::FILE *file = std::fopen(name, how);
    if (!file) {
        std::perror(name);
        std::exit(2);
    }
    return file;
}

class Bench {
public:
    Bench(Writer out, unsigned busy_percent) : out(out), busy_percent(busy_percent) {
        context.assertOn(true);
        core.clk = 0;
        core.rst = 1;
        core.tx_ready = 1;
        core.write = 0;
        core.rx_valid = 0;
        core.rx_last = 0;
        core.rx_error = 0;
        for (int i = 0; i < 4; i++) {
            core.eval();
            tick();
        }
        core.rst = 0;
    }

    void add(uint8_t line, Frame frame) {
        if (line > 2) fail("the stimulus has a frame of a line that is not there");
        lines[line].push_back(std::move(frame));
    }
    void add(Write write) { writes.push_back(write); }

    void run(uint64_t clocks) { run_until(cycle + clocks); }
    void run_until(uint64_t end) {
        while (cycle < end) step();
    }
    void run_until_written() {
        while (!writes.empty()) step();
    }
    void read(uint8_t address) {
        core.address = address;
        step();
        core.eval();
        out.put('R'), out.put(address), out.put(uint32_t(core.read_data));
    }
    void say_so_far() { out.put('S'), out.put(cycle); }

private:
    Writer out;
    const unsigned busy_percent;
    VerilatedContext context;
    Vcore core{&context};
    std::array<std::deque<Frame>, 3> lines;
    std::array<size_t, 3> at{};
    std::deque<Write> writes;
    std::vector<uint8_t> frame;
    uint64_t cycle = 0, frame_cycle = 0;
    uint32_t random = 1;

    void tick() {
        core.clk = 1;
        core.eval();
        core.clk = 0;
    }

    // A clock: what comes, what is written, what was done.
    void step() {
        core.rx_valid = 0;
        core.rx_last = 0;
        core.rx_error = 0;
        for (int i = 0; i < 3; i++) {
            if (lines[i].empty() || lines[i].front().cycle > cycle) continue;
            const Frame &f = lines[i].front();
            const size_t left = f.bytes.size() - at[i];
            uint64_t word = 0;
            std::memcpy(&word, &f.bytes[at[i]], left < 8 ? left : 8);
            core.rx_data[2 * i] = uint32_t(word);
            core.rx_data[2 * i + 1] = uint32_t(word >> 32);
            core.rx_valid |= 1u << i;
            const uint32_t keep = left >= 8 ? 0xff : (1u << left) - 1;
            core.rx_keep = (core.rx_keep & ~(0xffu << (8 * i))) | (keep << (8 * i));
            at[i] += 8;
            if (left <= 8) {
                core.rx_last |= 1u << i;
                if (f.bad) core.rx_error |= 1u << i;
                at[i] = 0;
                lines[i].pop_front();
            }
        }
        core.write = 0;
        if (!writes.empty() && writes.front().cycle <= cycle) {
            core.write = 1;
            core.address = writes.front().address;
            core.write_data = writes.front().value;
            writes.pop_front();
        }
        random = random * 1664525u + 1013904223u;
        core.tx_ready = (random >> 16) % 100 >= busy_percent;
        core.eval();
        if (context.gotError()) {
            std::fprintf(stderr, "an assertion of the core failed in cycle %llu\n", (unsigned long long)cycle);
            std::exit(3);
        }
        if (core.told) {
            out.put('B'), out.put(cycle), out.put(uint64_t(core.told_seq)), out.put(uint8_t(core.told_live));
            out.put(uint8_t(core.told_bid_valid)), out.put(uint32_t(core.told_bid_price));
            out.put(uint64_t(core.told_bid_qty));
            out.put(uint8_t(core.told_ask_valid)), out.put(uint32_t(core.told_ask_price));
            out.put(uint64_t(core.told_ask_qty));
        }
        if (core.trace_valid) {
            out.put('L'), out.put(uint64_t(core.told_seq)), out.put(uint8_t(core.trace_ask));
            out.put(uint8_t(core.trace_far)), out.put(uint32_t(core.trace_price));
            out.put(uint64_t(core.trace_qty)), out.put(uint16_t(core.trace_orders));
        }
        if (core.order_passed) out.put('P'), out.put(cycle), out.put(uint64_t(core.order_seq));
        if (core.order_blocked) out.put('X'), out.put(cycle), out.put(uint64_t(core.told_seq));
        if (core.tx_valid && core.tx_ready) {
            if (frame.empty()) frame_cycle = cycle;
            for (int i = 0; i < 8; i++)
                if (core.tx_keep >> i & 1) frame.push_back(uint8_t(core.tx_data >> (8 * i)));
            if (core.tx_last) {
                out.put('T'), out.put(frame_cycle), out.put(uint16_t(frame.size())), out.put(frame);
                frame.clear();
            }
        }
        tick();
        cycle++;
    }
};

} // namespace

int main(int argc, char **argv) {
    if (argc < 3) fail("core_bench STIMULUS RECORD [PERCENT]");
    Reader in{opened(argv[1], "rb", stdin)};
    Writer out{opened(argv[2], "wb", stdout)};
    Bench bench(out, argc > 3 ? std::atoi(argv[3]) : 0);
    for (uint8_t kind; in.get_kind(kind);) {
        if (kind == 'F') {
            Frame frame{in.get<uint64_t>(), false, {}};
            const auto line = in.get<uint8_t>();
            frame.bad = in.get<uint8_t>();
            frame.bytes.resize(in.get<uint16_t>());
            in.get(frame.bytes.data(), frame.bytes.size());
            if (frame.bytes.empty()) fail("the stimulus has a frame without a byte");
            bench.add(line, std::move(frame));
        } else if (kind == 'W') {
            const auto cycle = in.get<uint64_t>();
            const auto address = in.get<uint8_t>();
            bench.add(Write{cycle, address, in.get<uint32_t>()});
        } else if (kind == 'S') {
            bench.run(in.get<uint64_t>());
            bench.run_until_written();
            bench.say_so_far();
            std::fflush(out.file);
        } else if (kind == 'R') {
            const auto address = in.get<uint8_t>();
            bench.run_until_written();
            bench.read(address);
            std::fflush(out.file);
        } else if (kind == 'Q') {
            bench.run_until(in.get<uint64_t>());
            for (int address = 0; address < 64; address++) bench.read(uint8_t(address));
            break;
        } else {
            fail("the stimulus has a record of an unknown kind");
        }
    }
    std::fclose(out.file);
    return 0;
}
