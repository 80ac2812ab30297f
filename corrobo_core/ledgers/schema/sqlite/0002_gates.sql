-- Events of callback gates (9): append-only, one log for each gate of a stream; `seq` is the order in a stream.

create table corrobo_gate_event (
  seq integer primary key autoincrement,
  ns text not null,                -- namespace
  stream text not null,            -- such as a run id
  gate text not null,
  revision integer not null,       -- number in the gate's log, from 1; every append names the one it was decided on
  nonce text not null,             -- names the append
  recorded text not null,          -- ledger clock, ISO 8601, UTC
  event text not null,             -- canonical JSON, as on the wire
  beside text,                     -- what belongs to the event and is not on the wire: approval subject or record
  chain text not null,             -- digest over the log up to here
  unique (ns, stream, gate, revision)
) strict;

create index corrobo_gate_event_order on corrobo_gate_event (ns, stream, seq);
