-- What attention costs a decode step as the KV cache grows
select intDiv(kv_length, 64) * 64 as kv_length_from, uniqExact(recording, step) as steps,
       floor(sum(duration) / uniqExact(recording, step) / 1e3 * 10 + 0.5) / 10 as us_per_step
from scopes
global all inner join
(
    select recording, step, kv_length
    from steps
    where phase = 'decode' and kv_length is not null and not warmup and position(flags, 'sampled') = 0
) using (recording, step)
where brick in ('attention', 'attention_score', 'attention_softmax', 'attention_output') and leaf
group by kv_length_from
order by kv_length_from
