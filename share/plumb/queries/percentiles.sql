-- How the times of each brick are spread; no percentile where the calls are too few for it
select phase, brick, count(*) as calls, case when count(*) >= 20 then round(quantile_cont(duration, 0.5) / 1e3, 1) end as p50_us,
       case when count(*) >= 100 then round(quantile_cont(duration, 0.9) / 1e3, 1) end as p90_us,
       case when count(*) >= 1000 then round(quantile_cont(duration, 0.99) / 1e3, 1) end as p99_us,
       round(max(duration) / 1e3, 1) as max_us
from scopes
where kind in ('scope', 'lap', 'span') and duration is not null and not warmup and not contains(flags, 'sampled')
group by phase, brick
order by phase, p50_us desc, brick
