-- The twenty slowest steps, and how many times the median of their phase they took
select host, rank, step, phase, floor(period / 1e6 * 1000 + 0.5) / 1000 as period_ms, floor(duration / 1e6 * 1000 + 0.5) / 1000 as span_ms,
       floor(period / median_period * 100 + 0.5) / 100 as times_median, nullIf(prefill_tokens + decode_tokens, 0) as tokens, kv_length
from steps
global all inner join
(
    select phase, (sorted[intDiv(n - 1, 2) + 1] + sorted[intDiv(n, 2) + 1]) / 2 as median_period
    from
    (
        select phase, count() as n, arraySort(groupArray(period)) as sorted
        from steps
        where not warmup and position(flags, 'sampled') = 0
        group by phase
    )
) using phase
where not warmup and position(flags, 'sampled') = 0
order by period desc, recording, step
limit 20
