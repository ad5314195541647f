-- What bricks move and compute per second, where the program gave their work
select phase, brick, source, count() as calls, floor(sum(bytes) / nullIf(sumIf(duration, bytes is not null), 0) * 100 + 0.5) / 100 as gb_per_s,
       floor(sum(flops) / nullIf(sumIf(duration, flops is not null), 0) / 1e3 * 10000 + 0.5) / 10000 as tflop_per_s
from scopes
where kind in ('scope', 'lap', 'span') and (bytes is not null or flops is not null) and duration is not null and not warmup and position(flags, 'sampled') = 0
group by phase, brick, source
order by phase, gb_per_s desc, brick
