// Plays a stimulus into the simulated core and writes down what it did; it judges nothing. Both files are written
// and read by the crate tickwire-cosim, little-endian, without padding.
//
// Stimulus, in order of cycle (of frames the cycle of the first word):
//   'F' u64 cycle, u8 line, u8 bad FCS, u16 length, bytes
//   'W' u64 cycle, u8 address, u32 value
//   'Q' u64 cycle: the end
// Record:
//   'B' u64 cycle, u64 seq, u8 live, u8 has bid, u32 price, u64 qty, u8 has ask, u32 price, u64 qty
//   'L' u64 seq, u8 ask, u8 far, u32 price, u64 qty, u16 orders
//   'P' u64 cycle, u64 seq: an order passed the gate; 'X' u64 cycle, u64 seq: it was stopped
//   'T' u64 cycle of the first word, u16 length, bytes: a frame
//   'R' u8 address, u32 value: registers at the end
//
// core_bench STIMULUS RECORD [PERCENT]: in so many of a hundred clocks the transmitter is not ready.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "Vcore.h"
#include "verilated.h"

namespace {

struct Reader {
    std::vector<uint8_t> bytes;
    size_t at = 0;
    template <class T> T get() {
        T value{};
        if (at + sizeof(T) > bytes.size()) {
            std::fprintf(stderr, "the stimulus ends in the middle of a record\n");
            std::exit(2);
        }
        std::memcpy(&value, &bytes[at], sizeof(T));
        at += sizeof(T);
        return value;
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
    size_t from, length;
};

struct Write {
    uint64_t cycle;
    uint8_t address;
    uint32_t value;
};

} // namespace

int main(int argc, char **argv) {
    if (argc < 3) {
        std::fprintf(stderr, "core_bench STIMULUS RECORD [PERCENT]\n");
        return 2;
    }
    Reader in;
    std::FILE *file = std::fopen(argv[1], "rb");
    if (!file) {
        std::perror(argv[1]);
        return 2;
    }
    std::array<uint8_t, 65536> chunk;
    for (size_t n; (n = std::fread(chunk.data(), 1, chunk.size(), file)) > 0;)
        in.bytes.insert(in.bytes.end(), chunk.begin(), chunk.begin() + n);
    std::fclose(file);
    Writer out{std::fopen(argv[2], "wb")};
    if (!out.file) {
        std::perror(argv[2]);
        return 2;
    }
    const unsigned busy_percent = argc > 3 ? std::atoi(argv[3]) : 0;

    std::array<std::vector<Frame>, 3> lines;
    std::vector<Write> writes;
    uint64_t end = 0;
    while (in.at < in.bytes.size()) {
        const auto kind = in.get<uint8_t>();
        const auto cycle = in.get<uint64_t>();
        if (kind == 'F') {
            const auto line = in.get<uint8_t>();
            const bool bad = in.get<uint8_t>();
            const size_t length = in.get<uint16_t>();
            if (line > 2 || in.at + length > in.bytes.size()) return 2;
            lines[line].push_back({cycle, bad, in.at, length});
            in.at += length;
        } else if (kind == 'W') {
            const auto address = in.get<uint8_t>();
            writes.push_back({cycle, address, in.get<uint32_t>()});
        } else if (kind == 'Q') {
            end = cycle;
        } else {
            std::fprintf(stderr, "the stimulus has a record of an unknown kind\n");
            return 2;
        }
    }

    VerilatedContext context;
    context.assertOn(true);
    Vcore core{&context};
    core.clk = 0;
    core.rst = 1;
    core.tx_ready = 1;
    core.write = 0;
    core.rx_valid = 0;
    core.rx_last = 0;
    core.rx_error = 0;
    const auto tick = [&] {
        core.clk = 1;
        core.eval();
        core.clk = 0;
    };
    for (int i = 0; i < 4; i++) {
        core.eval();
        tick();
    }
    core.rst = 0;

    std::array<size_t, 3> next{}, at{};
    size_t next_write = 0;
    std::vector<uint8_t> frame;
    uint64_t frame_cycle = 0;
    uint32_t random = 1;
    for (uint64_t cycle = 0; cycle < end; cycle++) {
        core.rx_valid = 0;
        core.rx_last = 0;
        core.rx_error = 0;
        for (int i = 0; i < 3; i++) {
            if (next[i] == lines[i].size() || lines[i][next[i]].cycle > cycle) continue;
            const Frame &f = lines[i][next[i]];
            const size_t left = f.length - at[i];
            uint64_t word = 0;
            std::memcpy(&word, &in.bytes[f.from + at[i]], left < 8 ? left : 8);
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
                next[i]++;
            }
        }
        core.write = 0;
        if (next_write < writes.size() && writes[next_write].cycle <= cycle) {
            core.write = 1;
            core.address = writes[next_write].address;
            core.write_data = writes[next_write].value;
            next_write++;
        }
        random = random * 1664525u + 1013904223u;
        core.tx_ready = (random >> 16) % 100 >= busy_percent;
        core.eval();
        if (context.gotError()) {
            std::fprintf(stderr, "an assertion of the core failed in cycle %llu\n", (unsigned long long)cycle);
            return 3;
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
    }
    core.write = 0;
    core.rx_valid = 0;
    for (int address = 0; address < 64; address++) {
        core.address = address;
        core.eval();
        tick();
        core.eval();
        out.put('R'), out.put(uint8_t(address)), out.put(uint32_t(core.read_data));
    }
    std::fclose(out.file);
    return 0;
}
