-- How the times of each brick are spread
select phase, brick, count(*) as calls, round(quantile_cont(duration, 0.5) / 1e3, 1) as p50_us,
       round(quantile_cont(duration, 0.9) / 1e3, 1) as p90_us, round(quantile_cont(duration, 0.99) / 1e3, 1) as p99_us,
       round(max(duration) / 1e3, 1) as max_us
from scopes
where kind in ('scope', 'lap', 'span') and duration is not null and not warmup and not contains(flags, 'sampled')
group by phase, brick
order by phase, p50_us desc, brick
