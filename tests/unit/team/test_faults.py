"""Faults of a Team file (SPEC 2): each with file, line, path, expected and found, and all of them at once."""

from __future__ import annotations

import pytest

from coordinator.team.faults import Fault
from coordinator.team.loader import examine_text, make_team
from coordinator.wire.errors import InputFault


def faults_of(text: str, *, allow_cycle: bool = False) -> list[Fault]:
    return examine_text(text, "team.yaml", is_json=False, allow_cycle=allow_cycle)[1]


def team_text(task: str = "{}", top: str = "") -> str:
    """A Team of one task `a`; the task stands on line 4, what `top` adds from line 5 on."""
    return f"team: t\nroles: {{w: {{capabilities: [a, b]}}, v: {{capabilities: [b]}}}}\ntasks:\n  a: {task}\n{top}"


ONE_FAULT = [
    # task, top, path, expected, found
    ("{max_attempts: true}", "", "tasks.a.max_attempts", "a whole number", "true"),
    ("{max_attempts: 1.0}", "", "tasks.a.max_attempts", "a whole number", "1.0"),
    ("{max_attempts: 0}", "", "tasks.a.max_attempts", "at least 1", "0"),
    ("{max_attempts: -1}", "", "tasks.a.max_attempts", "at least 1", "-1"),
    ("{max_attempts: '3'}", "", "tasks.a.max_attempts", "a whole number", '"3"'),
    ("{required: no}", "", "tasks.a.required", "true or false", '"no"'),
    ("{required: 1}", "", "tasks.a.required", "true or false", "1"),
    ("{priority: high}", "", "tasks.a.priority", "a whole number", '"high"'),
    ("{timeout: 5 minutes}", "", "tasks.a.timeout", "a duration", '"5 minutes"'),
    ("{timeout: 0}", "", "tasks.a.timeout", "above 0", "0"),
    ("{timeout: true}", "", "tasks.a.timeout", "a duration", "true"),
    ("{timeout: -1}", "", "tasks.a.timeout", "a duration", "-1"),
    ("{timeout: 0.0001}", "", "tasks.a.timeout", "a duration", "0.0001"),
    ("{backoff: {first: 2m, max: 1m}}", "", "tasks.a.backoff.max", "at least as much", "60000"),
    ("{requires: b}", "", "tasks.a.requires", "a list", '"b"'),
    ("{requires: [5]}", "", "tasks.a.requires[0]", "text", "5"),
    ("{requires: [nobody]}", "", "tasks.a.requires[0]", "one of a", '"nobody"'),
    ("{after: [a]}", "", "tasks.a.after[0]", "another task", "a itself"),
    ("{any_of: {count: 1, tasks: [x]}}", "", "tasks.a.any_of.tasks[0]", "one of a", '"x"'),
    ("{retries: 3}", "", "tasks.a.retries", "", "the unknown key retries"),
    ("{notify: me}", "", "tasks.a.notify", "a supported key", "notify, which is not yet supported"),
    ("{four_eyes: true}", "", "tasks.a.four_eyes", "a supported key", "four_eyes, which is not yet supported"),
    ("{input: {k: {secret: TOKEN}}}", "", "tasks.a.input.k", "a supported input", "not yet supported"),
    ("{input: {k: {from: inputs.zz}}}", "", "tasks.a.input.k", "no input of the run", '"zz"'),
    ("{input: {k: {from: tasks.a.result}}}", "", "tasks.a.input.k", "requires", '"a"'),
    ("{input: [{from: input.zz}]}", "", "tasks.a.input[0]", "inputs.NAME", '"input.zz"'),
    ("{input: {from: item}}", "", "tasks.a.input", "`for_each` beside", "none"),
    ("{output_schema: 5}", "", "tasks.a.output_schema", "a JSON Schema", "5"),
    ("{output_schema: {type: objekt}}", "", "tasks.a.output_schema.type", "a JSON Schema", "objekt"),
    ("{output_schema: {$ref: 'http://x/y'}}", "", "tasks.a.output_schema.$ref", "inside this schema", "http://x/y"),
    ("{output_bytes: 0}", "", "tasks.a.output_bytes", "at least 1", "0"),
    ("{owner: nobody}", "", "tasks.a.owner", "one of w, v", '"nobody"'),
    ("{capability: b}", "", "tasks.a", "an owner, as several roles have b", "w, v"),
    ("{capability: zz}", "", "tasks.a", "a role with the capability zz", "none"),
    ("{capability: 'a b'}", "", "tasks.a.capability", "a name", '"a b"'),
    ("{for_each: {from: inputs.zz}}", "", "tasks.a.for_each.from", "no input", '"zz"'),
    ("{for_each: {from: item}}", "", "tasks.a.for_each.from", "inputs.NAME or tasks.TASK.result", '"item"'),
    ("{for_each: {}}", "", "tasks.a.for_each.from", "this key to be given", "nothing"),
    ("{for_each: {from: inputs.i, max: 5, min_success: 6}}", "inputs: {i: {type: array}}",
     "tasks.a.for_each.min_success", "at most `max`, 5", "6"),
    ("{for_each: {from: inputs.i, min_success: -1}}", "inputs: {i: {}}",
     "tasks.a.for_each.min_success", "all, or", "-1"),
    ("{for_each: {from: inputs.i}}", "inputs: {i: {type: string}}",
     "tasks.a.for_each.from", "type is array", '"string"'),
    ("{external: true, max_attempts: 2}", "", "tasks.a.max_attempts", "1, as the task is external", "2"),
    ("{external: true, for_each: {from: inputs.i}}", "inputs: {i: {}}", "tasks.a.for_each", "supported", "not yet"),
    ("{when: {tokens: 5}}", "", "tasks.a.when", "only input, result and state", "tokens"),
    ("{when: {result: {task: b, equals: 1}}}", "", "tasks.a.when.result.task", "one of a", '"b"'),
    ("{when: sometimes}", "", "tasks.a.when", "a rule", '"sometimes"'),
    ("{outcome_plan: maybe}", "", "tasks.a.outcome_plan", "one of success", "'maybe'"),
    ("{outcome_plan: []}", "", "tasks.a.outcome_plan", "at least one", "[]"),
    ("{required: false}", "", "tasks", "at least one required task", "only optional ones"),
    ("5", "", "tasks.a", "an object", "5"),
    ("{reserve: {tokens: 5}}", "limits: {tokens: 4}", "tasks.a.reserve.tokens", "at most the whole limit, 4", "5"),
    ("{reserve: {cost: 1.5}}", "limits: {cost: 1}", "tasks.a.reserve.cost", "the whole limit, 1.000000", "1.500000"),
    ("{}", "limits: {tokens: 4}", "tasks.a.reserve.tokens", "a reserve", "nothing"),
    ("{}", "limits: {cost: 4}", "tasks.a.reserve.cost", "a reserve", "nothing"),
    ("{}", "limits: {step_budget: 0}", "limits.step_budget", "at least 1", "0"),
    ("{}", "limits: {max_steps: 9007199254740992}", "limits.max_steps", "at most 9007199254740991", "9007199254740992"),
    ("{reserve: {cost: 0}}", "limits: {cost: 0.0000001}", "limits.cost", "6 decimals", "0.0000001"),
    ("{reserve: {cost: 0}}", "limits: {cost: 0.1000000000000000000000000001}", "limits.cost", "6 decimals", "0.1000"),
    ("{reserve: {cost: 0}}", "limits: {cost: -1}", "limits.cost", "6 decimals", "-1"),
    ("{reserve: {cost: 0}}", "limits: {cost: 9007199254.740992}", "limits.cost", "6 decimals", "9007199254.740992"),
    ("{}", "limits: {wall: 5}", "limits.wall", "", "the unknown key wall"),
    ("{}", "on_limit: halt", "on_limit", "stop, pause", '"halt"'),
    ("{}", "crewline: 2", "crewline", "1", "2"),
    ("{}", "strict: true", "strict", "", "the unknown key strict"),
    ("{}", "notify: [x]", "notify", "a supported key", "not yet supported"),
    ("{}", "defaults: {requires: [a]}", "defaults.requires", "for all tasks", "requires"),
    ("{}", "defaults: {max_attempts: x}", "defaults.max_attempts", "a whole number", '"x"'),
    ("{}", "inputs: {i: {type: integer, default: x}}", "inputs.i.default", "its own schema", "not of type"),
    ("{}", "inputs: {i: {pattern: '(?=x)'}}", "inputs.i.pattern", "without look-around", "(?=x)"),
    ("{}", "inputs: {'a b': {}}", 'inputs."a b"', "a name", '"a b"'),
    ("{}", "inputs: []", "inputs", "an object", "an empty list"),
    ("{}", "output: {from: tasks.zz.result}", "output.from", "one of a", '"zz"'),
    ("{}", "output: {value: 1}", "output", "{from:", "an object with value"),
    ("{}", "output: tasks.a.result", "output", "an object", '"tasks.a.result"'),
    ("{}", "stop_when: [{name: x, ends: stopped}]", "stop_when[0].rule", "this key to be given", "nothing"),
    ("{}", "stop_when: [{name: x, ends: never, rule: true}]", "stop_when[0].ends", "stopped, completed", '"never"'),
    ("{}", "stop_when: [{name: x, ends: failed, rule: {reporter_role: nobody}}]", "stop_when[0].rule.reporter_role",
     "one of w, v", '"nobody"'),
    ("{}", "stop_when: {}", "stop_when", "a list", "an empty object"),
]  # fmt: skip


@pytest.mark.parametrize(("task", "top", "path", "expected", "found"), ONE_FAULT)
def test_one_fault_is_told_once_with_its_place(
    task: str, top: str, path: str, expected: str, found: str
) -> None:
    faults = faults_of(team_text(task, top))
    assert [(fault.file, fault.path) for fault in faults] == [("team.yaml", path)]
    assert expected in faults[0].expected
    assert found in faults[0].found
    line = 5 if top and not path.startswith("tasks") else 4
    assert faults[0].line == (3 if path == "tasks" else line)
    assert (
        str(faults[0])
        == f"team.yaml:{faults[0].line}: {path}: expected {faults[0].expected}, found {faults[0].found}"
    )


def test_all_faults_are_listed_at_once_in_the_order_of_the_file() -> None:
    text = """crewline: true
team: 5
roles:
  clerk: {capabilities: [a, a], may_spawn: [x]}
  a--b: {}
tasks:
  t1: {capability: a, requires: [t1, t9, t9], max_attempts: true}
  t2: {capability: a, any_of: {count: 3, tasks: [t1], foo: 1}, input: {x: {from: inputs.n}}}
  t3: {owner: nobody, capability: a, for_each: {from: inputs.n, max_parallel: 0}}
  t3: {}
  t4: {capability: a, requires: [t5], reserve: {cost: .nan}}
  t5: {capability: a, requires: [t4], when: {all: [{tokens: 1}, {result: {task: zz, equals: 1}}, {bad: 1}]}}
limits: {deadline: soon, cost: 1}
stop_when:
- {name: n, ends: stoped, rule: {all: [{state: {task: t99, is: done}}, {succeeded: {count: 2, of: [t1]}}]}}
- {name: n, ends: failed, rule: {signal: 5}}
output: {from: tasks.t1.result, at: x}
"""
    found = [(fault.line, fault.path) for fault in faults_of(text)]
    assert found == sorted(found, key=lambda entry: entry[0])
    assert set(found) == {
        (1, "crewline"), (2, "team"), (4, "roles.clerk.may_spawn[0]"), (4, "roles.clerk.capabilities"),
            (5, "roles.a--b"),
        (7, "tasks.t1.max_attempts"), (7, "tasks.t1.requires[0]"), (7, "tasks.t1.requires[1]"),
        (7, "tasks.t1.requires[2]"), (7, "tasks.t1.requires"), (7, "tasks.t1.reserve.cost"),
        (8, "tasks.t2.any_of.foo"), (8, "tasks.t2.any_of.count"), (8, "tasks.t2.input.x"), (8, "tasks.t2.reserve.cost"),
        (9, "tasks.t3.owner"), (9, "tasks.t3.for_each.max_parallel"), (9, "tasks.t3.for_each.from"),
        (9, "tasks.t3.reserve.cost"), (10, "tasks.t3"), (11, "tasks.t4.reserve.cost"), (11, "tasks.t4"),
        (12, "tasks.t5.when"), (12, "tasks.t5.when.all[1].result.task"), (12, "tasks.t5.when.all[2].bad"),
        (12, "tasks.t5.reserve.cost"), (13, "limits.deadline"),
        (15, "stop_when[0].ends"), (15, "stop_when[0].rule.all[0].state.is"),
        (15, "stop_when[0].rule.all[0].state.task"),
        (15, "stop_when[0].rule.all[1].succeeded.count"), (16, "stop_when[1].name"), (16, "stop_when[1].rule.signal"),
        (17, "output.from"),
    }  # fmt: skip


def test_C_11_an_unknown_requirement_is_refused_with_a_suggestion() -> None:
    tasks = "".join(f"  task_{at}: {{capability: a}}\n" for at in range(30))
    faults = faults_of(team_text("{requires: [tsak_17]}", "").rstrip() + "\n" + tasks)
    assert [fault.expected for fault in faults] == ["a known task (did you mean task_17?)"]


def test_a_reference_that_is_faulty_below_a_list_keeps_its_index() -> None:
    faults = faults_of(team_text("{input: {x: [1, {from: tasks.nobody.result}, {from: inputs.none}]}}"))
    assert [fault.path for fault in faults] == ["tasks.a.input.x[1]", "tasks.a.input.x[2]"]


def test_many_faults_do_not_take_long() -> None:
    tasks = {f"t{at}": {"requires": [f"u{at}"], "nonsense": 1} for at in range(3000)}
    with pytest.raises(InputFault) as caught:
        make_team({"team": "t", "tasks": tasks})
    assert len(caught.value.faults) == 9000
