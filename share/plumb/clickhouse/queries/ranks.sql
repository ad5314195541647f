-- Ranks by their mean step, the slowest first
select host, rank, phase, n as steps, floor(mean / 1e6 * 1000 + 0.5) / 1000 as mean_ms,
       floor((sorted[intDiv(n - 1, 2) + 1] + sorted[intDiv(n, 2) + 1]) / 2 / 1e6 * 1000 + 0.5) / 1000 as p50_ms,
       floor(sorted[n] / 1e6 * 1000 + 0.5) / 1000 as max_ms, floor(1e9 * nullIf(tokens, 0) / total * 10 + 0.5) / 10 as tokens_per_s
from
(
    select host, rank, phase, count() as n, avg(period) as mean, sum(period) as total, arraySort(groupArray(period)) as sorted,
           sum(prefill_tokens + decode_tokens) as tokens
    from steps
    where not warmup and position(flags, 'sampled') = 0
    group by host, rank, phase
)
order by phase, mean_ms desc, host, rank
