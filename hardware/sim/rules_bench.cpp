// Tells many rules the same and writes down what each wants; it judges nothing. Little-endian, without padding.
//
// Inputs, one record of 42 bytes a turn: u8 flags (1 trade, 2 live, 4 has bid, 8 has ask, 16 has last), u32 bid price,
// u64 bid quantity, u32 ask price, u64 ask quantity, u32 last price, u32 last quantity, 9 bytes of nothing.
// Output: for each order u32 turn, u16 rule, u8 sell, u32 quantity, u32 price.
//
// rules_bench INPUTS OUTPUT
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "Vrules.h"
#include "verilated.h"

int main(int argc, char **argv) {
    if (argc != 3) {
        std::fprintf(stderr, "rules_bench INPUTS OUTPUT\n");
        return 2;
    }
    std::FILE *in = std::fopen(argv[1], "rb"), *out = std::fopen(argv[2], "wb");
    if (!in || !out) {
        std::perror("rules_bench");
        return 2;
    }
    VerilatedContext context;
    Vrules rules{&context};
    const auto tick = [&] {
        rules.eval();
        rules.clk = 1;
        rules.eval();
        rules.clk = 0;
        rules.eval();
    };
    uint32_t turn = 0;
    const auto collect = [&] {
        for (unsigned n = 0; n < rules.count; n++) {
            const auto bit = [n](const auto &of) { return of[n / 32] >> (n % 32) & 1; };
            if (!bit(rules.order_valid)) continue;
            const uint16_t rule = uint16_t(n);
            const uint8_t sell = uint8_t(bit(rules.order_ask));
            const uint32_t qty = rules.order_qty[n], price = rules.order_price[n];
            std::fwrite(&turn, 4, 1, out);
            std::fwrite(&rule, 2, 1, out);
            std::fwrite(&sell, 1, 1, out);
            std::fwrite(&qty, 4, 1, out);
            std::fwrite(&price, 4, 1, out);
        }
    };
    rules.clk = 0;
    rules.rst = 1;
    rules.start_book = 0;
    rules.start_trade = 0;
    for (int i = 0; i < 4; i++) tick();
    rules.rst = 0;
    uint8_t record[42];
    while (std::fread(record, sizeof record, 1, in) == 1) {
        const auto u32 = [&](int at) { uint32_t v; std::memcpy(&v, record + at, 4); return v; };
        const auto u64 = [&](int at) { uint64_t v; std::memcpy(&v, record + at, 8); return v; };
        rules.live = record[0] >> 1 & 1;
        rules.bid_valid = record[0] >> 2 & 1;
        rules.ask_valid = record[0] >> 3 & 1;
        rules.has_last = record[0] >> 4 & 1;
        rules.bid_price = u32(1);
        rules.bid_qty = u64(5);
        rules.ask_price = u32(13);
        rules.ask_qty = u64(17);
        rules.last_price = u32(25);
        rules.last_qty = u32(29);
        rules.start_trade = record[0] & 1;
        rules.start_book = !(record[0] & 1);
        tick();
        rules.start_trade = 0;
        rules.start_book = 0;
        for (int clock = 0; clock < 64; clock++) {
            rules.eval();
            collect();
            tick();
        }
        turn++;
    }
    std::fclose(in);
    std::fclose(out);
    return 0;
}
