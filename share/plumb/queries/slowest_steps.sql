-- The twenty slowest steps, and how many times the median of their phase they took
select host, rank, step, phase, round(period / 1e6, 3) as period_ms, round(duration / 1e6, 3) as span_ms,
       round(period / median(period) over (partition by phase), 2) as times_median,
       nullif(prefill_tokens + decode_tokens, 0) as tokens, kv_length
from steps
where not warmup and not contains(flags, 'sampled')
order by period desc, recording, step
limit 20
