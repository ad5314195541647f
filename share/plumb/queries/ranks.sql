-- Ranks by their mean step, the slowest first
select host, rank, phase, count(*) as steps, round(avg(period) / 1e6, 3) as mean_ms,
       round(median(period) / 1e6, 3) as p50_ms, round(max(period) / 1e6, 3) as max_ms,
       round(1e9 * nullif(sum(prefill_tokens + decode_tokens), 0) / sum(period), 1) as tokens_per_s
from steps
where not warmup and not contains(flags, 'sampled')
group by host, rank, phase
order by phase, mean_ms desc, host, rank
