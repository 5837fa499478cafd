// The same messages through hffix (https://github.com/jamesdbrock/hffix, BSD 2-clause): a batch a call.
#include <chrono>
#include <cstdint>
#include <hffix.hpp>

namespace {
struct Order {
    uint64_t seq, time;
    int64_t cents;
    uint32_t qty;
    uint8_t symbol_len, account_len, side, time_in_force;
    char id[16], symbol[8], account[16];
};
using Time = std::chrono::time_point<std::chrono::system_clock, std::chrono::nanoseconds>;

int64_t raw(hffix::field_value const& value) {
    int64_t mantissa, exponent;
    value.as_decimal(mantissa, exponent);
    int64_t unit = 1000000000;
    for (; exponent < 0; ++exponent) unit /= 10;
    return mantissa * unit;
}

bool whole(hffix::message_reader& r) {
    return r.is_complete() && r.is_valid() && r.calculate_check_sum() == r.check_sum()->value().as_int<unsigned char>();
}
}

extern "C" {

// Writes `count` orders one after the other over the same buffer; the sum of their lengths.
uint64_t hffix_encode(Order const* orders, uint64_t count, char* buffer, uint64_t size) {
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < count; ++i) {
        Order const& o = orders[i];
        Time const time{std::chrono::nanoseconds(o.time)};
        hffix::message_writer w(buffer, buffer + size);
        w.push_back_header("FIX.4.4");
        w.push_back_string(35, "D");
        w.push_back_string(49, "TICKWIRE");
        w.push_back_string(56, "EXCHANGE");
        w.push_back_int(34, o.seq);
        w.push_back_timestamp(52, time);
        w.push_back_string(11, o.id, o.id + 16);
        w.push_back_string(1, o.account, o.account + o.account_len);
        w.push_back_string(100, "XNAS");
        w.push_back_char(21, '1');
        w.push_back_string(55, o.symbol, o.symbol + o.symbol_len);
        w.push_back_char(54, o.side);
        w.push_back_timestamp(60, time);
        w.push_back_int(38, o.qty);
        w.push_back_char(40, '2');
        w.push_back_decimal<int64_t>(44, o.cents, -2);
        w.push_back_char(59, o.time_in_force);
        w.push_back_string(15, "USD");
        w.push_back_char(47, 'A');
        w.push_back_char(204, '0');
        w.push_back_trailer();
        bytes += w.message_end() - buffer;
        asm volatile("" : : "r"(buffer) : "memory");
    }
    return bytes;
}

// Reads `count` messages one behind the other; `sums[i]` is what the fields of message i say, 0 if it is not whole.
void hffix_reports(char const* bytes, uint64_t const* lens, uint64_t count, uint64_t* sums) {
    for (uint64_t i = 0; i < count; bytes += lens[i], ++i) {
        hffix::message_reader r(bytes, bytes + lens[i]);
        uint64_t sum = 0;
        if (whole(r)) {
            for (auto f = r.begin(); f != r.end(); ++f) {
                switch (f->tag()) {
                case 34: case 38: case 32: case 151: case 14: sum += f->value().as_int<uint64_t>(); break;
                case 44: case 31: case 6: sum += raw(f->value()); break;
                case 150: case 39: case 54: sum += (unsigned char)f->value().as_char(); break;
                case 37: case 11: case 17: case 55: sum += f->value().size(); break;
                case 60: { Time t; if (f->value().as_timestamp(t)) sum += t.time_since_epoch().count(); break; }
                }
            }
        }
        sums[i] = sum;
    }
}

void hffix_refreshes(char const* bytes, uint64_t const* lens, uint64_t count, uint64_t* sums) {
    for (uint64_t i = 0; i < count; bytes += lens[i], ++i) {
        hffix::message_reader r(bytes, bytes + lens[i]);
        uint64_t sum = 0;
        if (whole(r)) {
            auto f = r.begin();
            while (f != r.end() && f->tag() != 268) ++f;
            if (f != r.end()) ++f;
            for (; f != r.end(); ++f) {
                switch (f->tag()) {
                case 279: case 269: sum += (unsigned char)f->value().as_char(); break;
                case 278: case 55: sum += f->value().size(); break;
                case 270: sum += raw(f->value()); break;
                case 271: sum += f->value().as_int<uint64_t>(); break;
                }
            }
        }
        sums[i] = sum;
    }
}

}
