// What others need for an option: price, delta, gamma, vega and theta of Black-76 for 1024 options after a tick of their underlying, the
// universe of crates/options/benches/reprice.rs, with
//   libmvec    the textbook formula in one loop, vectorised by the compiler with glibc's vector functions (erfc, exp, log)
//   scalar     the same loop, not vectorised
//   quantlib   QuantLib's BlackCalculator, where it was found
// Built and run by `cargo xtask quantlib --speed`. Prints `name ns` for each: nanoseconds an option, least of all rounds; and before
// its time counts each one's prices are compared with the scalar ones.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#ifdef WITH_QUANTLIB
#include <ql/instruments/payoffs.hpp>
#include <ql/pricingengines/blackcalculator.hpp>
#endif

namespace {

constexpr int EXPIRIES = 16, STRIKES = 64, OPTIONS = EXPIRIES * STRIKES;
constexpr double RATE = 0.045;
constexpr double DAYS[EXPIRIES] = {1, 2, 3, 5, 7, 10, 14, 21, 30, 45, 60, 91, 120, 182, 230, 270};

struct Universe {
  alignas(64) double strike[OPTIONS], years[OPTIONS], vol[OPTIONS], sign[OPTIONS];
  alignas(64) double price[OPTIONS], delta[OPTIONS], gamma[OPTIONS], vega[OPTIONS], theta[OPTIONS];
};

void fill(Universe &u) {
  for (int e = 0; e < EXPIRIES; e++) {
    double years = DAYS[e] / 365.0, at = 0.14 + 0.03 * std::sqrt(DAYS[e] / 270.0);
    for (int i = 0; i < STRIKES; i++) {
      double x = (i - 38.0) / 10.0;
      int n = e * STRIKES + i;
      u.strike[n] = std::round(5000.0 * std::exp(x * at * std::sqrt(years)) / 5.0) * 5.0;
      double turn = 1.0 - 0.12 * x + 0.03 * x * x;
      u.vol[n] = at * std::fmin(std::fmax(turn, 0.6), 2.5);
      u.years[n] = years;
      u.sign[n] = i % 3 == 0 ? -1.0 : 1.0;
    }
  }
}

/// As the textbooks write it, nothing kept between ticks.
inline void textbook(Universe &u, int i, double forward) {
  double strike = u.strike[i], years = u.years[i], vol = u.vol[i], sign = u.sign[i];
  double root = std::sqrt(years), s = vol * root, df = std::exp(-RATE * years);
  double d1 = std::log(forward / strike) / s + 0.5 * s, d2 = d1 - s;
  double n1 = 0.5 * erfc(-sign * d1 * M_SQRT1_2), n2 = 0.5 * erfc(-sign * d2 * M_SQRT1_2);
  double density = std::exp(-0.5 * d1 * d1) * 0.3989422804014327;
  double price = df * sign * (forward * n1 - strike * n2), vega = df * forward * density * root;
  u.price[i] = price;
  u.delta[i] = df * sign * n1;
  u.gamma[i] = df * density / (forward * s);
  u.vega[i] = vega;
  u.theta[i] = RATE * price - vega * vol / (2.0 * years);
}

__attribute__((noinline)) void vectorised(Universe &u, double forward) {
#pragma GCC ivdep
  for (int i = 0; i < OPTIONS; i++) textbook(u, i, forward);
}

__attribute__((noinline, optimize("no-tree-vectorize"))) void scalar(Universe &u, double forward) {
  for (int i = 0; i < OPTIONS; i++) {
    textbook(u, i, forward);
    asm volatile("" ::: "memory");
  }
}

#ifdef WITH_QUANTLIB
__attribute__((noinline)) void quantlib(Universe &u, double forward) {
  using namespace QuantLib;
  for (int i = 0; i < OPTIONS; i++) {
    Option::Type type = u.sign[i] > 0 ? Option::Call : Option::Put;
    BlackCalculator b(type, u.strike[i], forward, u.vol[i] * std::sqrt(u.years[i]), std::exp(-RATE * u.years[i]));
    u.price[i] = b.value();
    u.delta[i] = b.deltaForward();
    u.gamma[i] = b.gammaForward();
    u.vega[i] = b.vega(u.years[i]);
    u.theta[i] = b.theta(forward, u.years[i]);
  }
}
#endif

double measure(const char *name, void (*run)(Universe &, double), Universe &u, int rounds) {
  // The answer first.
  static Universe want;
  want = u;
  scalar(want, 5001.25);
  run(u, 5001.25);
  for (int i = 0; i < OPTIONS; i++) {
    // Cancellation in the tails: of a point, not of the value.
    if (std::fabs(u.price[i] - want.price[i]) > 1e-8 || std::fabs(u.vega[i] - want.vega[i]) > 1e-6 * (1 + want.vega[i])) {
      std::fprintf(stderr, "%s: option %d is worth %.12g, not %.12g\n", name, i, u.price[i], want.price[i]);
      std::exit(1);
    }
  }
  double best = 1e300;
  for (int round = 0; round < rounds; round++) {
    auto begin = std::chrono::steady_clock::now();
    for (int tick = 0; tick < 40; tick++) {
      run(u, 4990.0 + 0.25 * tick);
      asm volatile("" ::"r"(&u) : "memory");
    }
    std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best = std::fmin(best, took.count() / (40.0 * OPTIONS));
  }
  std::printf("%s %.3f\n", name, best);
  return best;
}

} // namespace

int main(int argc, char **argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 60;
  static Universe u;
  fill(u);
  measure("libmvec", vectorised, u, rounds);
  measure("scalar", scalar, u, rounds);
#ifdef WITH_QUANTLIB
  measure("quantlib", quantlib, u, rounds / 4 + 1);
#endif
}
