"""Charges orders on a ledger. The one line that matters is `context.action`: with a check, nothing is charged twice.

For who wants to pull the plug: LEDGER_STOP_AT names a moment (before_start, before_effect, after_effect, confirmed) at
which the first attempt at order A-2 stands still; its process id is then in LEDGER_STOPPED. Kill the worker there.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any, TypedDict

from bank import Bank

from workers import Context, Permanent, handler

HERE = Path(__file__).parent


class Order(TypedDict):
    id: str
    account: str
    cents: int


class Charge(TypedDict):
    order: Order
    ledger: str


@handler("read_orders")
def read_orders(context: Context, input: dict[str, str]) -> dict[str, list[Order]]:
    orders: list[Order] = json.loads((HERE / input["file"]).read_text())["orders"]
    return {"orders": orders}


@handler("charge")
def charge(context: Context, input: Charge) -> dict[str, Any]:
    order, bank = input["order"], Bank(Path(input["ledger"]))
    reference = f"{context.run}/{order['id']}"

    def pay() -> dict[str, Any]:
        stand_still(context, order, "before_effect")
        receipt = bank.charge(reference, order["account"], order["cents"])
        stand_still(context, order, "after_effect")
        return receipt

    stand_still(context, order, "before_start")
    receipt: dict[str, Any] = context.action(
        "charge", pay, details={**order, "reference": reference}, check=lambda: bank.find(reference)
    )
    stand_still(context, order, "confirmed")
    return receipt


@handler("reconcile")
def reconcile(context: Context, input: dict[str, Any]) -> dict[str, Any]:
    """Every receipt stands in the ledger, and nothing else of this run does."""
    written = [
        entry
        for entry in Bank(Path(input["ledger"])).entries()
        if entry["reference"].startswith(f"{context.run}/")
    ]
    if sorted(written, key=_number) != sorted(input["receipts"], key=_number):
        raise Permanent(f"the ledger has {len(written)} charges, the receipts are {len(input['receipts'])}")
    return {"charges": len(written), "cents": sum(entry["cents"] for entry in written)}


def _number(entry: dict[str, Any]) -> int:
    return int(entry["number"])


def stand_still(context: Context, order: Order, moment: str) -> None:
    """Waits for the end, if this is the moment that LEDGER_STOP_AT names."""
    if context.attempt > 1 or order["id"] != "A-2" or os.environ.get("LEDGER_STOP_AT") != moment:
        return
    Path(os.environ["LEDGER_STOPPED"]).write_text(f"{os.getpid()}\n")
    while True:
        signal.pause()
