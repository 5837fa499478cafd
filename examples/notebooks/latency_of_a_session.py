# %% [markdown]
# # The latency of a session
# The feed handler plays a recording at its own speed; what every packet took, from memory to a book that others can see, it counts
# in shared memory. This reads the counts while it runs, and cannot disturb it.
#
# The figures are of whatever machine ran the notebook, here a shared one that was busy with other things: they show what can be seen,
# and are no result ([those](../../docs/results/feed-daemon.md)).

# %%
import os
import subprocess
import tempfile
import time

import matplotlib.pyplot as plt
import numpy as np

import tickwire

program = os.environ.get("TICKWIRE_PROGRAM", "tickwire")
words = [program, "feed", "-c", os.environ.get("TICKWIRE_CONFIG", "bindings/daemon.toml"), "--replay", os.environ.get("TICKWIRE_CAPTURE", "day.pcap")]
folder = tempfile.mkdtemp()
handler = subprocess.Popen([*words, "--folder", folder, "--speed", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def attached() -> tickwire.Feed:
    end = time.monotonic() + 60
    while True:
        try:
            return tickwire.Feed(folder)
        except tickwire.NotRunning:
            assert time.monotonic() < end, "the feed handler does not start"
            time.sleep(0.05)


# %% [markdown]
# Looked at ten times a second until the recording is over.

# %%
feed = attached()
names = [source.name for source in feed.sources()]
seen: dict[str, list[tuple[float, int]]] = {name: [] for name in names}
begun, quiet = time.monotonic(), 0
while quiet < 10:
    before = sum(source.packets for source in feed.sources())
    time.sleep(0.1)
    for source in feed.sources():
        seen[source.name].append((time.monotonic() - begun, source.packets))
    after = sum(source.packets for source in feed.sources())
    quiet = quiet + 1 if after == before and after else 0
latencies = {name: feed.latency(name) for name in names}
for name, of in latencies.items():
    print(f"{name:10} {of.count:8} packets   p50 {of.quantile(0.5):6} ns   p99 {of.quantile(0.99):7} ns   max {of.quantile(1.0):9} ns")

# %%
figure, axis = plt.subplots(figsize=(9, 4))
rest = np.logspace(0, -5, 200)
for name, of in latencies.items():
    axis.plot(1 / rest, [of.quantile(1 - part) / 1e3 for part in rest], label=name)
axis.set(xscale="log", yscale="log", xlabel="percentile", ylabel="µs", title="Packet in memory to book visible")
axis.set_xticks([1, 10, 100, 1_000, 10_000, 100_000], ["0", "90", "99", "99.9", "99.99", "99.999"])
axis.grid(True, which="major", alpha=0.3)
axis.legend(frameon=False)
plt.show()

# %%
figure, axis = plt.subplots(figsize=(9, 3))
for name, points in seen.items():
    at, packets = (np.array(values) for values in zip(*points))
    axis.step(at[1:], np.diff(packets) / np.diff(at), where="pre", label=name)
axis.set(xlabel="seconds", ylabel="packets a second", title="What came in")
axis.legend(frameon=False)
plt.show()

# %% [markdown]
# The feed handler ends in good order when it is asked to.

# %%
feed.close()
handler.terminate()
print("ended with", handler.wait(timeout=20))
