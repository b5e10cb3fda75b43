"""Equilibria: the laws of mass action and of mass balance, and the limits that every chemist knows."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from geonode.corpus.chemistry.acid_base import protonation
from geonode.corpus.chemistry.consecutive import populations
from geonode.corpus.mass_action import (
    bound_1_1,
    free_guest_1_2,
    free_host_competing,
    increasing_root,
    isodesmic_monomer,
    monomer,
)

BALANCE = 1e-6  # of the total: what the corpus promises

decades = st.floats(-6.0, 4.0).map(lambda power: 10.0**power)


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@given(host=decades, guest=decades, kd=decades)
def test_1_1_obeys_mass_action_and_balance(host, guest, kd):
    h, g, k = column(host), column(guest), column(kd)
    bound = bound_1_1(h, g, k)
    assert (bound <= torch.minimum(h, g) * (1 + BALANCE)).all() and (bound >= 0).all()
    # Kd [HG] = [H][G], relative to the larger side so that a nearly full host does not count its rounding
    residual = (h - bound) * (g - bound) - k * bound
    assert (residual.abs() <= BALANCE * (h * g + k * bound)).all()


@given(host=decades, guest=decades, first=decades, second=decades)
def test_1_2_balances_the_guest(host, guest, first, second):
    h, g, k1, k2 = column(host), column(guest), column(first), column(second)
    free = free_guest_1_2(h, g, k1, k2)
    one, two = free / k1, free**2 / (k1 * k2)
    total = free + h * (one + 2 * two) / (1 + one + two)
    torch.testing.assert_close(total, g, rtol=BALANCE, atol=0.0)


@given(host=decades, first=decades, second=decades, kd_first=decades, kd_second=decades)
def test_competing_guests_balance_the_host(host, first, second, kd_first, kd_second):
    h, a, b, ka, kb = (column(value) for value in (host, first, second, kd_first, kd_second))
    free = free_host_competing(h, a, b, ka, kb)
    torch.testing.assert_close(free + a * free / (ka + free) + b * free / (kb + free), h, rtol=BALANCE, atol=0.0)


@given(total=decades, association=decades)
def test_self_association_keeps_the_mass(total, association):
    t, k = column(total), column(association)
    free = monomer(t, k)
    torch.testing.assert_close(free + 2 * k * free**2, t, rtol=BALANCE, atol=0.0)
    stacked = isodesmic_monomer(t, k)
    # (1 − K m) is lost to rounding where nearly all is stacked: the law is asked where it can be
    if total * association < 1e6:
        torch.testing.assert_close(stacked / (1 - k * stacked) ** 2, t, rtol=BALANCE, atol=0.0)


def test_tight_binding_is_stoichiometric():
    guest = torch.linspace(0, 3, 31, dtype=torch.float64)
    bound = bound_1_1(column(1.0), guest, column(1e-12))
    torch.testing.assert_close(bound, guest.clamp(max=1.0), rtol=0, atol=1e-5)


def test_weak_binding_of_a_dilute_host_is_a_hyperbola():
    guest = torch.linspace(0, 50, 31, dtype=torch.float64)
    bound = bound_1_1(column(1e-9), guest, column(2.0)) / 1e-9
    torch.testing.assert_close(bound, guest / (guest + 2.0), rtol=1e-6, atol=0.0)


def test_statistical_1_2_binding_is_two_independent_sites():
    # K₂ = 4 K₁: occupancy of each site is that of 1:1 binding with Kd = 2 K₁
    guest = torch.logspace(-3, 3, 25, dtype=torch.float64)
    free = free_guest_1_2(column(1.0), guest, column(0.5), column(2.0))
    sites = bound_1_1(column(2.0), guest, column(1.0))
    torch.testing.assert_close(guest - free, sites, rtol=1e-6, atol=1e-12)


def test_without_competitor_the_indicator_binds_1_1():
    indicator = torch.logspace(-3, 2, 12, dtype=torch.float64)
    free = free_host_competing(column(1.0), indicator, column(0.0), column(0.3), column(0.1))
    torch.testing.assert_close(1.0 - free, bound_1_1(column(1.0), indicator, column(0.3)), rtol=1e-6, atol=1e-12)


@given(root=st.floats(-9.0, 0.0))
def test_roots_over_nine_decades(root):
    place = 10.0**root
    found = increasing_root(lambda f: f * f - place * place, column(1.0))
    torch.testing.assert_close(found, column(place), rtol=1e-9, atol=0.0)


@given(ph=st.floats(-3, 17), pka=st.lists(st.floats(0, 14), min_size=1, max_size=3))
def test_protonation_fractions_sum_to_one_and_obey_henderson(ph, pka):
    constants = torch.tensor([sorted(pka)], dtype=torch.float64)
    states = protonation(torch.tensor([[ph]], dtype=torch.float64), constants)[0, 0]
    torch.testing.assert_close(states.sum(), torch.ones((), dtype=torch.float64), rtol=BALANCE, atol=0.0)
    for step, value in enumerate(sorted(pka)):
        assert math.isclose(
            float(torch.log10(states[step + 1]) - torch.log10(states[step])), ph - value, abs_tol=1e-6
        ), "log [A⁻]/[HA] = pH − pKa"


def test_protonation_leaves_out_steps_that_are_not_there():
    ph = torch.linspace(2, 12, 11, dtype=torch.float64)[None]
    pka = torch.tensor([[4.0, 7.0, 9.0]], dtype=torch.float64)
    one = protonation(ph, pka, torch.tensor([[1]]))
    torch.testing.assert_close(one[..., :2], protonation(ph, pka[:, :1]), rtol=1e-12, atol=0.0)
    assert (one[..., 2:] == 0).all()


@given(first=decades, ratio=st.one_of(st.just(1.0), st.floats(0.5, 2.0), decades), t=decades)
def test_consecutive_populations_are_fractions(first, ratio, t):
    k1, k2 = column(first)[None], column(first * ratio)[None]
    share = populations(column(t)[None], k1, k2)[0, 0]
    assert (share >= 0).all() and torch.isfinite(share).all()
    torch.testing.assert_close(share.sum(), torch.ones((), dtype=torch.float64), rtol=BALANCE, atol=0.0)


@pytest.mark.parametrize(("first", "second"), [(1.0, 3.0), (2.0, 0.5), (1.0, 1.0 + 1e-5)])
def test_consecutive_populations_solve_their_equations(first, second):
    t = torch.linspace(0.1, 4.0, 9, dtype=torch.float64)[None].requires_grad_()
    share = populations(t, column(first)[None], column(second)[None])
    rate = torch.autograd.grad(share[..., 1].sum(), t)[0]
    torch.testing.assert_close(rate, first * share[..., 0] - second * share[..., 1], rtol=1e-6, atol=1e-8)
