-- list_roles: every role that a run has named, in order; roles of the coordinator itself begin with "~".

Read[#Read + 1] = {
  name = "list_roles",
  fields = {},
  read = function()
    return redis.call("ZRANGE", Key.of("roles"), 0, -1)
  end,
}
