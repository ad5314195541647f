-- How the times of each brick are spread; no percentile where the calls are too few for it
select phase, brick, n as calls,
       if(n >= 20, floor((sorted[toUInt64(p50) + 1] + (sorted[toUInt64(ceil(p50)) + 1] - sorted[toUInt64(p50) + 1]) * (p50 - floor(p50))) / 1e3 * 10 + 0.5) / 10, null) as p50_us,
       if(n >= 100, floor((sorted[toUInt64(p90) + 1] + (sorted[toUInt64(ceil(p90)) + 1] - sorted[toUInt64(p90) + 1]) * (p90 - floor(p90))) / 1e3 * 10 + 0.5) / 10, null) as p90_us,
       if(n >= 1000, floor((sorted[toUInt64(p99) + 1] + (sorted[toUInt64(ceil(p99)) + 1] - sorted[toUInt64(p99) + 1]) * (p99 - floor(p99))) / 1e3 * 10 + 0.5) / 10, null) as p99_us,
       floor(sorted[n] / 1e3 * 10 + 0.5) / 10 as max_us
from
(
    select phase, brick, arraySort(groupArray(duration)) as sorted, count() as n,
           0.5 * (n - 1) as p50, 0.9 * (n - 1) as p90, 0.99 * (n - 1) as p99
    from scopes
    where kind in ('scope', 'lap', 'span') and duration is not null and not warmup and position(flags, 'sampled') = 0
    group by phase, brick
)
order by phase, p50_us desc, brick
