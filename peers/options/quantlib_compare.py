"""Tickwire's option values beside QuantLib's, on random terms from a fixed seed: `cargo xtask quantlib`.

Takes the program of crates/options/examples/values.rs as its argument. Prints the largest differences and exits with 1 where one is
larger than the other program's own error allows (the golden tables say which of the two is nearer to the truth).
"""

import math
import random
import subprocess
import sys

import QuantLib as ql

SEED = 20261122


def terms(rng, count, deviations, rates):
    for _ in range(count):
        forward = rng.choice([1.0, 75.25, 100.0, 5000.0])
        years = rng.choice([1, 7, 30, 91, 182, 365, 730]) / 365
        vol = rng.uniform(0.08, 0.6)
        strike = forward * math.exp(rng.uniform(-deviations, deviations) * vol * math.sqrt(years))
        yield [forward, strike, years, vol, rng.choice(rates), rng.choice([0, 1])]


def ours(program, model, rows):
    text = "".join(model + "," + ",".join(repr(x) for x in row) + "\n" for row in rows)
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    return [[float(x) for x in line.split(",")] for line in done.stdout.splitlines()]


def kind(row):
    return ql.Option.Call if row[5] == 1 else ql.Option.Put


def black(row):
    forward, strike, years, vol, rate, _ = row
    payoff = ql.PlainVanillaPayoff(kind(row), strike)
    b = ql.BlackCalculator(payoff, forward, vol * math.sqrt(years), math.exp(-rate * years))
    return [b.value(), b.deltaForward(), b.gammaForward(), b.vega(years)]


def bachelier(row):
    forward, strike, years, vol, rate, _ = row
    return [ql.bachelierBlackFormula(kind(row), strike, forward, vol * math.sqrt(years), math.exp(-rate * years))]


def american(row):
    forward, strike, years, vol, rate, _ = row
    today = ql.Date(2, 1, 2026)
    ql.Settings.instance().evaluationDate = today
    count = ql.Actual365Fixed()
    last = today + round(years * 365)
    flat = ql.YieldTermStructureHandle(ql.FlatForward(today, rate, count))
    sigma = ql.BlackVolTermStructureHandle(ql.BlackConstantVol(today, ql.NullCalendar(), vol, count))
    process = ql.BlackProcess(ql.QuoteHandle(ql.SimpleQuote(forward)), flat, sigma)
    option = ql.VanillaOption(ql.PlainVanillaPayoff(kind(row), strike), ql.AmericanExercise(today, last))
    option.setPricingEngine(ql.QdFpAmericanEngine(process, ql.QdFpAmericanEngine.highPrecisionScheme()))
    return [option.NPV()]


def compare(name, columns, rows, got, want, scale, bound):
    """Differences over `scale` of the row; the largest of each column against `bound`."""
    worst = [0.0] * len(columns)
    for row, mine, theirs in zip(rows, got, want):
        for i in range(len(columns)):
            worst[i] = max(worst[i], abs(mine[i] - theirs[i]) / scale(row, theirs[i]))
    is_good = all(w <= bound for w in worst)
    for column, w in zip(columns, worst):
        print(f"{name:<22}{column:<8}{len(rows):>7} rows  largest difference {w:9.1e}  allowed {bound:.0e}")
    return is_good


def main():
    program = sys.argv[1]
    rng = random.Random(SEED)
    print(f"QuantLib {ql.__version__}, seed {SEED}")
    good = True
    rows = list(terms(rng, 4000, 3, [0.0, 0.02, 0.045]))
    size = [lambda r, w: abs(w) + 1e-4 * r[0], lambda r, w: abs(w) + 1e-4, lambda r, w: abs(w) + 1e-4 / r[0], lambda r, w: abs(w) + 1e-4 * r[0]]
    got, want = ours(program, "black", rows), [black(r) for r in rows]
    for i, column in enumerate(["price", "delta", "gamma", "vega"]):
        one = lambda table: [[row[i]] for row in table]
        good &= compare("Black-76, near", [column], rows, one(got), one(want), size[i], 1e-10)
    # QuantLib's formula cancels out here: shown, and held to an absolute bound only.
    far = list(terms(rng, 2000, 7, [0.0, 0.045]))
    far = [r[:5] + [1 if r[1] > r[0] else 0] for r in far]
    good &= compare("Black-76, to 7 dev.", ["price"], far, ours(program, "black", far), [black(r) for r in far], lambda r, w: r[0], 1e-13)
    relative = max(abs(a[0] / black(r)[0] - 1) for a, r in zip(ours(program, "black", far), far))
    print(f"{'':<22}relative to the price the largest is {relative:.1e}: QuantLib's tails, see the golden tables")
    normal = [[r[0], r[0] + 3 * (r[1] - r[0]), r[2], r[3] * r[0]] + r[4:] for r in rows]
    good &= compare("Bachelier", ["price"], normal, ours(program, "bachelier", normal), [bachelier(r) for r in normal], lambda r, w: abs(w) + 1e-4 * r[0], 1e-10)
    out = [r[:5] + [1 if r[1] > r[0] else 0] for r in rows]
    prices = [[r[0], r[1], r[2], black(r)[0]] + r[4:] for r in out]
    good &= compare("implied volatility", ["vol"], out, ours(program, "implied", prices), [[r[3]] for r in out], lambda r, w: w, 1e-9)
    early = list(terms(rng, 400, 2, [0.01, 0.03, 0.08]))
    good &= compare("American on futures", ["price"], early, ours(program, "american", early), [american(r) for r in early], lambda r, w: r[0], 1e-9)
    print("agree" if good else "DIFFER")
    sys.exit(0 if good else 1)


main()
