"""Owns the capabilities of the repository audit: each one hands its typed input to the module that does the work.

Must not hold audit logic; that stands in `repo_audit/`, one module per question asked of the checkout.
"""

from __future__ import annotations

from repo_audit import checkout, imports, licences, summary, syntax, tests_found, todos
from repo_audit.checkout import Checkout, CheckoutQuery, Package

from workers import Context, Permanent, handler


@handler("find_packages")
def find_packages(context: Context, input: CheckoutQuery) -> Checkout:
    """Lists the folders with Python files, at most as many as the Team fans out over."""
    try:
        return checkout.survey(input.path)
    except NotADirectoryError as error:
        raise Permanent(f"there is no checkout at {error}") from error


@handler("find_tests")
def find_tests(context: Context, input: CheckoutQuery) -> tests_found.TestsFound:
    """Counts test files and test functions of the whole checkout."""
    try:
        return tests_found.find(checkout.survey(input.path))
    except NotADirectoryError as error:
        raise Permanent(f"there is no checkout at {error}") from error


@handler("read_licences")
def read_licences(context: Context, input: CheckoutQuery) -> licences.Licences:
    """Names the licence of every declared dependency that is installed here."""
    return licences.read(checkout.root_of(input.path))


@handler("check_syntax")
def check_syntax(context: Context, input: Package) -> syntax.Syntax:
    """Parses every file of one package."""
    return syntax.check(input)


@handler("check_imports")
def check_imports(context: Context, input: Package) -> imports.Imports:
    """Resolves every import of one package."""
    return imports.check(input)


@handler("find_todos")
def find_todos(context: Context, input: Package) -> todos.Todos:
    """Finds TODO, FIXME, XXX and HACK comments of one package."""
    return todos.find(input)


@handler("summarise")
def summarise(context: Context) -> summary.Summary:
    """Brings the results of all requirements together, as data and as a short Markdown text."""
    return summary.build(context.results)
