"""Run the benchmarks that take minutes. Those that need data or more time are run by name."""

from benchmarks import decode_speed, footprint, train_speed

for benchmark in (footprint, train_speed, decode_speed):
    benchmark.main()
