-- What attention costs a decode step as the KV cache grows
select steps.kv_length // 64 * 64 as kv_length_from, count(distinct (steps.recording, steps.step)) as steps,
       round(sum(scopes.duration) / count(distinct (steps.recording, steps.step)) / 1e3, 1) as us_per_step
from steps join scopes on scopes.recording = steps.recording and scopes.step = steps.step
where steps.phase = 'decode' and steps.kv_length is not null and scopes.leaf
      and scopes.brick in ('attention', 'attention_score', 'attention_softmax', 'attention_output')
      and not steps.warmup and not contains(steps.flags, 'sampled')
group by kv_length_from
order by kv_length_from
