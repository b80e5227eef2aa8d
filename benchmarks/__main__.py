"""All benchmarks that take minutes; multi30k, which takes an hour and needs data, is run by name."""

from benchmarks import decode_speed, footprint, train_speed

for benchmark in (footprint, train_speed, decode_speed):
    benchmark.main()
