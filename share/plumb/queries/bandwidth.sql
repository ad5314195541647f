-- What bricks move and compute per second, where the program gave their work
select phase, brick, source, count(*) as calls, round(sum(bytes) / nullif(sum(duration) filter (where bytes is not null), 0), 2) as gb_per_s,
       round(sum(flops) / nullif(sum(duration) filter (where flops is not null), 0) / 1e3, 4) as tflop_per_s
from scopes
where kind in ('scope', 'lap', 'span') and (bytes is not null or flops is not null) and duration is not null and not warmup and not contains(flags, 'sampled')
group by phase, brick, source
order by phase, gb_per_s desc, brick
