-- What people decided (8): append-only.

create table corrobo_decision (
  seq integer primary key autoincrement,
  ns text not null,
  id text not null,
  token text not null,             -- of the episode
  kind text not null,
  recorded text not null,          -- ledger clock, ISO 8601, UTC
  doc text not null,               -- reviewer, times, note, effect
  foreign key (ns, id) references corrobo_operation (ns, id) on delete restrict on update restrict
) strict;

create index corrobo_decision_operation on corrobo_decision (ns, id, seq);
