-- Append a person's decision, by the function that may (R1).
-- $1 ns  $2 id  $3 token  $4 kind  $5 reviewer  $6 decided at  $7 expires at  $8 fp  $9 note  $10 effect
select d.now, pg_is_in_recovery(), d.code, d.decision, d.earlier,
       d.version, d.owner, d.nonce, d.started, d.abandoned, d.type, d.fp, d.intent, d.doc
from {schema}.decide($1::text, $2::text, $3::text, $4::text, $5::text, $6::timestamptz, $7::timestamptz, $8::text,
                     $9::text, $10::json) d
