-- Collectives by rank: how often, how long; waiting for other ranks is in it
select host, rank, phase, brick, count(*) as calls, round(sum(duration) / 1e6, 3) as total_ms,
       round(avg(duration) / 1e3, 1) as mean_us, round(max(duration) / 1e3, 1) as max_us
from collectives
where not warmup and not contains(flags, 'sampled')
group by host, rank, phase, brick
order by total_ms desc, host, rank, brick
