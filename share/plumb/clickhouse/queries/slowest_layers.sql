-- Layers by what a step spends in their bricks
select phase, layer, uniqExact(recording, step) as steps,
       floor(count() / uniqExact(recording, step) * 10 + 0.5) / 10 as calls_per_step,
       floor(sum(duration) / uniqExact(recording, step) / 1e3 * 10 + 0.5) / 10 as us_per_step,
       floor(max(duration) / 1e3 * 10 + 0.5) / 10 as longest_us
from scopes
where leaf and layer is not null and step is not null and not warmup and position(flags, 'sampled') = 0
group by phase, layer
order by phase, us_per_step desc, layer
