-- Events of callback gates (9): append-only, one log for each gate of a stream; `seq` is the order in a stream.

create table {schema}.gate_event (
  seq bigint generated always as identity,
  ns text collate "C" not null,             -- namespace
  stream text collate "C" not null,         -- such as a run id
  gate text collate "C" not null,
  revision bigint not null,                 -- number in the gate's log, from 1; every append names the one it was decided on
  nonce text not null,                      -- names the append
  recorded timestamptz not null,            -- ledger clock
  event text not null,                      -- canonical JSON, as on the wire
  beside text,                              -- what belongs to the event and is not on the wire: approval subject or record
  chain text not null,                      -- digest over the log up to here
  primary key (ns, stream, gate, revision)
);

create index gate_event_order on {schema}.gate_event (ns, stream, seq);
