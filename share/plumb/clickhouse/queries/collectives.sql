-- Collectives by rank: how often, how long; waiting for other ranks is in it
select host, rank, phase, brick, count() as calls, floor(sum(duration) / 1e6 * 1000 + 0.5) / 1000 as total_ms,
       floor(avg(duration) / 1e3 * 10 + 0.5) / 10 as mean_us, floor(max(duration) / 1e3 * 10 + 0.5) / 10 as max_us
from scopes
where category = 'collective' and not warmup and position(flags, 'sampled') = 0
group by host, rank, phase, brick
order by total_ms desc, host, rank, brick
