-- list_reviews: a page of open reviews of all runs, oldest first, each a JSON text with its run.

Read[#Read + 1] = {
  name = "list_reviews",
  fields = { "offset", "limit" },
  ints = { offset = true, limit = true },
  read = function(q)
    local members = redis.call("ZRANGE", Key.of("reviews_open"), q.offset, q.offset + q.limit - 1)
    local rows = {}
    for i = 1, #members do
      local run, id = string.match(members[i], "^([^|]*)|(.*)$")
      rows[i] = { run, redis.call("HGET", Key.of("reviews", run), id) or "" }
    end
    return rows
  end,
}
