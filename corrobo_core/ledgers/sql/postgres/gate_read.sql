-- Read one gate's log after a revision, or all logs of a stream, and the time.
-- $1 ns  $2 stream  $3 gate or null for all  $4 after revision
select clock_timestamp(), pg_is_in_recovery(),
       (select json_agg(json_build_array(e.gate, e.revision, e.nonce, e.event, e.beside, e.chain) order by e.seq)
        from {schema}.gate_event e
        where e.ns = $1::text and e.stream = $2::text and ($3::text is null or e.gate = $3::text) and e.revision > $4::bigint)
