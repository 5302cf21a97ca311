-- read_records: all records of one kind of a run (`cancellations`, `actions`, `reviews`, `artifacts`), each a JSON
-- text, sorted.

Read[#Read + 1] = {
  name = "read_records",
  fields = { "run", "kind" },
  read = function(q)
    local records = redis.call("HVALS", Key.of(q.kind, q.run))
    table.sort(records)
    return records
  end,
}
