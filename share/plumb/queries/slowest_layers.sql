-- Layers by what a step spends in their bricks
select phase, layer, count(distinct (recording, step)) as steps,
       round(count(*) / count(distinct (recording, step)), 1) as calls_per_step,
       round(sum(duration) / count(distinct (recording, step)) / 1e3, 1) as us_per_step,
       round(max(duration) / 1e3, 1) as longest_us
from scopes
where leaf and layer is not null and step is not null and not warmup and not contains(flags, 'sampled')
group by phase, layer
order by phase, us_per_step desc, layer
