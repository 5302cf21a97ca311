"""Owns the three capabilities of the refund review: reading an order, applying the policy, writing the letter.

Must not know the Team: which task may fail, what is retried and when the run stops stands in the Team file alone.
All facts come from the files beside this one; dates come from the order, so a review gives the same answer on any day.
"""

from __future__ import annotations

from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from string import Template
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workers import Context, MissingInput, Permanent, Transient, handler

HERE = Path(__file__).resolve().parent
CENT = Decimal("0.01")
M = TypeVar("M", bound="Model")


class Model(BaseModel):
    """What all documents here share: unknown keys are faults, so a typing error in a file is found."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class OrderQuery(Model):
    order_id: str = Field(pattern=r"^[A-Z]-[0-9]{4}$")


class Item(Model):
    sku: str
    name: str
    category: str
    quantity: int = Field(ge=1)
    unit_price: Decimal = Field(ge=0)

    @property
    def amount(self) -> Decimal:
        return self.unit_price * self.quantity


class Order(Model):
    id: str
    customer: str
    language: str
    paid: bool
    delivered: date
    refund_requested: date
    reason: str
    items: list[Item] = Field(min_length=1)
    shipping: Decimal
    total: Decimal

    @property
    def days_since_delivery(self) -> int:
        return (self.refund_requested - self.delivered).days


class Rule(Model):
    window_days: int
    refund_percent: int = Field(ge=0, le=100)


class Policy(Model):
    version: str
    rules: dict[str, Rule]
    refund_shipping_within_days: int


class PolicyQuery(Model):
    order: Order


class Line(Model):
    sku: str
    refund: Decimal
    why: str


class Decision(Model):
    order_id: str
    policy_version: str
    approved: bool
    refund: Decimal
    lines: list[Line]


class LetterRequest(Model):
    order: Order
    decision: Decision


class Letter(Model):
    to: str
    language: str
    words: int
    text: str


@handler("read_order")
def read_order(context: Context, input: OrderQuery) -> Order:
    """Reads orders/ID.json and checks that it adds up; an order that is not on file is asked for."""
    path = HERE / "orders" / f"{input.order_id}.json"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MissingInput(f"order {input.order_id} is not on file: which order is meant?") from None
    except OSError as error:
        raise Transient(f"order {input.order_id} cannot be read now: {error}") from error
    order = _parse(Order, text, path)
    total = sum((item.amount for item in order.items), order.shipping)
    if total != order.total:
        raise Permanent(
            f"order {order.id}: items and shipping add up to {total}, the order says {order.total}"
        )
    if not order.paid:
        raise Permanent(f"order {order.id} was never paid: there is nothing to refund")
    return order


@handler("apply_policy")
def apply_policy(context: Context, input: PolicyQuery) -> Decision:
    """Applies policy.json to every item; an item that no rule covers is a failure, never a guess."""
    path = HERE / "policy.json"
    policy = _parse(Policy, path.read_text(encoding="utf-8"), path)
    order = input.order
    uncovered = sorted({item.category for item in order.items} - policy.rules.keys())
    if uncovered:
        raise Permanent(
            f"policy {policy.version} has no rule for {', '.join(uncovered)}: a person must decide"
        )
    lines = [_judge(item, policy.rules[item.category], order.days_since_delivery) for item in order.items]
    if order.days_since_delivery <= policy.refund_shipping_within_days:
        why = f"within {policy.refund_shipping_within_days} days"
        lines.append(Line(sku="shipping", refund=order.shipping, why=why))
    refund = sum((line.refund for line in lines), Decimal(0))
    return Decision(
        order_id=order.id, policy_version=policy.version, approved=refund > 0, refund=refund, lines=lines
    )


@handler("write_letter")
def write_letter(context: Context, input: LetterRequest) -> Letter:
    """Fills the letter of the customer's language; a language that has none is a failure of this task alone."""
    order, decision = input.order, input.decision
    path = HERE / "letters" / f"{order.language}.txt"
    if not path.is_file():
        raise Permanent(f"there is no letter in language {order.language!r}")
    if decision.approved:
        opening = f"Your refund for order {order.id} is approved: you get {decision.refund} back."
        closing = "The money is on its way to the account that paid."
    else:
        opening = f"We looked at order {order.id} and cannot refund it."
        closing = "If you think that we missed something, answer this letter."
    names = {item.sku: item.name for item in order.items}
    lines = [f"- {names.get(line.sku, line.sku)}: {line.refund} ({line.why})" for line in decision.lines]
    text = Template(path.read_text(encoding="utf-8")).substitute(
        customer=order.customer, opening=opening, lines="\n".join(lines), closing=closing
    )
    return Letter(to=order.customer, language=order.language, words=len(text.split()), text=text)


def _judge(item: Item, rule: Rule, days: int) -> Line:
    """One item under its rule; half a cent is rounded up."""
    if days > rule.window_days:
        why = f"{days} days after delivery, allowed are {rule.window_days}"
        return Line(sku=item.sku, refund=Decimal("0.00"), why=why)
    share = Decimal(rule.refund_percent) / 100
    refund = (item.amount * share).quantize(CENT, ROUND_HALF_UP)
    return Line(sku=item.sku, refund=refund, why=f"{rule.refund_percent} % within {rule.window_days} days")


def _parse(model: type[M], text: str, path: Path) -> M:
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        raise Permanent(f"{path.name} is not valid: {error}") from error
