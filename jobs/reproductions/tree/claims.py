"""The claims of the paper on nested records, each with what was seen; verdicts are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from jobs.benchmarks.tree.records import K
from jobs.reproductions.claims import Claim, claims_table
from jobs.reproductions.tree.runs import WAYS, Found, Outcome, Sweep, Way

SAME = 1e-9
STABLE = 0.10  # a share within which a loss is called stable, flat or slightly worse
FASTER = 10  # GCS beside ACS
PAPER_GAP = 1.5  # OCS beside GCS for n = 2, 3
PAPER_MIRACLE = 2.0  # MiRaCle beside GCS for m < 5
NEAR = 0.25  # how far from such a factor is still "about"
PAPER_ML2 = {"GCS": 0.405, "MiRaCle": 0.783, "OCS": 0.828}
MOST_DML2 = 0.19
PAPER_TIME = (0.97, 0.858)  # by which share the time of GCS falls from k = 5 to 100, and from there to 300
PAPER_ABSENT = (0.001, 0.21)  # individuals per K with four absent values, or groups
LINEAR = 1.3  # time per record at the largest size, at most so many times that at the smallest


def claims_text(found: Found) -> str:
    every = [*by_greed(found), *by_loss(found), *by_subtrees(found), *by_time(found), *by_absence(found), *ours(found)]
    return claims_table(every)


def rpd_of(one: Outcome) -> float:
    return one.losses.rpd


def gap(of: Mapping[Way, Outcome], one: Way = "OCS", other: Way = "GCS") -> float:
    """By which share the RPD of one way is above that of another."""
    return rpd_of(of[one]) / rpd_of(of[other]) - 1


def settings_of(found: Found) -> list[tuple[str, Mapping[Way, Outcome]]]:
    """All settings of the sweeps, the default ones once."""
    sweeps = {"k": found.by_k, "m": found.by_m, "n": found.by_n, "records": found.by_size}
    every = {id(of["GCS"]): (f"{name} = {at:,}", of) for name, sweep in sweeps.items() for at, of in sweep.items()}
    return list(every.values())


def _told(sweep: Sweep, number: Callable[[Mapping[Way, Outcome]], float], form: str = "+.1%") -> str:
    return ", ".join(f"{at:,}: {number(of):{form}}" for at, of in sweep.items())


# --- 1. g ------------------------------------------------------------------------------------------------------------------


def by_greed(found: Found) -> Iterator[Claim]:
    """GCS beside ACS where that ends."""
    ending = {k: of for k, of in found.greeds.items() if of[0].ended}
    missed = "" if len(ending) == len(found.greeds) else "; ACS did not end for all k asked"
    ratios = {
        k: {g: rpd_of(one) / rpd_of(of[0]) for g, one in of.items() if g} for k, of in ending.items()
    }
    told = "; ".join(f"k = {k}: " + ", ".join(f"g = {g} {ratio:.3g}×" for g, ratio in of.items()) for k, of in ratios.items())
    yield Claim(
        "1",
        "RPD of GCS reaches that of ACS at g = 2",
        f"RPD beside ACS: {told}{missed}",
        bool(ratios) and all(of[2] <= 1 + SAME for of in ratios.values()),
    )
    faster = {k: of[0].seconds / of[2].seconds for k, of in ending.items()}
    cuts = ", ".join(f"k = {k}: {of[0].cuts:,} and {of[2].cuts:,} cuts" for k, of in ending.items())
    yield Claim(
        "1",
        f"GCS (g = 2) is at least {FASTER}× faster than ACS",
        f"{', '.join(f'k = {k}: {times:.1f}×' for k, times in faster.items())} ({cuts})",
        bool(faster) and min(faster.values()) >= FASTER,
    )


# --- 2. RPD ----------------------------------------------------------------------------------------------------------------


def by_loss(found: Found) -> Iterator[Claim]:
    """GCS, OCS and MiRaCle by k, m, n and size."""
    above = [(name, gap(of)) for name, of in settings_of(found)]
    worse = [f"{name} ({share:+.1%})" for name, share in above if share < -SAME]
    yield Claim(
        "2",
        "RPD: GCS ≤ OCS everywhere",
        f"in {len(above) - len(worse)} of {len(above)} settings{'; not for ' + ', '.join(worse) if worse else ''}",
        not worse,
    )
    gaps = [gap(of) for of in found.by_k.values()]  # k ascends
    yield Claim(
        "2",
        "OCS is the more above GCS, the smaller k (k 300 → 5: 8.7% → 39.5%)",
        f"k = {_told(found.by_k, gap)}",
        gaps[0] > gaps[-1] and all(one >= two - SAME for one, two in pairwise(gaps)),
    )
    high = {m: gap(found.by_m[m]) for m in (4, 5, 6)}
    yield Claim(
        "2",
        "OCS is the more above GCS, the smaller m, from 6 to 4 (up to 54%)",
        f"m = {_told(found.by_m, gap)}",
        high[4] > high[6] and high[4] >= high[5] >= high[6],
    )
    none = found.by_n[0]
    below = -gap(none, "GCS", "MiRaCle")
    yield Claim(
        "2",
        "n = 0: GCS = OCS, both 56% below MiRaCle",
        f"OCS {gap(none):+.1%}; GCS {below:.1%} below MiRaCle",
        abs(gap(none)) <= SAME and abs(below - 0.56) <= NEAR * 0.56,
    )
    greedy = [rpd_of(of["GCS"]) for of in found.by_n.values()]
    yield Claim(
        "2",
        f"GCS is stable as n grows (within {STABLE:.0%})",
        f"n = {_told(found.by_n, lambda of: rpd_of(of['GCS']), '.4g')}",
        max(greedy) <= (1 + STABLE) * min(greedy),
    )
    rises = rpd_of(found.by_n[max(found.by_n)]["OCS"]) / rpd_of(none["OCS"]) - 1
    yield Claim("2", "OCS rises as n grows (by 53%)", f"{rises:+.1%} from n = 0 to {max(found.by_n)}", rises > STABLE)
    some = {n: 1 + gap(found.by_n[n]) for n in (2, 3)}
    yield Claim(
        "2",
        "OCS is 1.5× GCS for n = 2, 3",
        ", ".join(f"n = {n}: {ratio:.2f}×" for n, ratio in some.items()),
        all(abs(ratio / PAPER_GAP - 1) <= NEAR for ratio in some.values()),
    )
    beside = {m: 1 + gap(of, "MiRaCle") for m, of in found.by_m.items()}
    yield Claim(
        "2",
        "MiRaCle is about 2× GCS for m < 5",
        ", ".join(f"m = {m}: {ratio:.3g}×" for m, ratio in beside.items()),
        all(abs(ratio / PAPER_MIRACLE - 1) <= NEAR for m, ratio in beside.items() if m < 5),
    )
    first, last = (found.by_size[at] for at in (min(found.by_size), max(found.by_size)))
    change: dict[Way, float] = {way: rpd_of(last[way]) / rpd_of(first[way]) - 1 for way in WAYS}
    sizes = f"{min(found.by_size):,} → {max(found.by_size):,} records"
    yield Claim("2", "With more records GCS improves", f"{change['GCS']:+.1%}, {sizes}", change["GCS"] < 0)
    yield Claim(
        "2", "With more records OCS gets slightly worse", f"{change['OCS']:+.1%}, {sizes}", 0 <= change["OCS"] <= STABLE
    )
    yield Claim(
        "2", f"MiRaCle is flat (within {STABLE:.0%})", f"{change['MiRaCle']:+.1%}, {sizes}", abs(change["MiRaCle"]) <= STABLE
    )


# --- 3., 4. frequent subtrees ----------------------------------------------------------------------------------------------


def ml2_of(one: Outcome) -> float:
    assert one.losses.ml2 is not None, "it was counted"
    return one.losses.ml2


def dml2_of(one: Outcome) -> float:
    assert one.losses.dml2 is not None, "it was counted"
    return one.losses.dml2


def by_subtrees(found: Found) -> Iterator[Claim]:
    """ML² and dML² with the default parameters, by m and by n."""
    usual = found.large or found.usual
    told = ", ".join(f"{way} {ml2_of(usual[way]):.3f}" for way in WAYS)
    yield Claim(
        "3",
        "ML² ranks GCS, MiRaCle, OCS (250 k: " + ", ".join(f"{way} {loss}" for way, loss in PAPER_ML2.items()) + ")",
        f"{usual['GCS'].records:,} records: {told}",
        ml2_of(usual["GCS"]) < ml2_of(usual["MiRaCle"]) < ml2_of(usual["OCS"]),
    )
    less = {m: 1 - ml2_of(of["GCS"]) / ml2_of(of["MiRaCle"]) for m, of in found.by_m.items()}
    yield Claim(
        "3",
        "ML²: GCS loses 40–50% less than MiRaCle for m < 5",
        ", ".join(f"m = {m}: {share:.1%}" for m, share in less.items()),
        all(0.4 <= share <= 0.5 for m, share in less.items() if m < 5),
    )
    settings = [of for _, of in settings_of(found) if of["GCS"].losses.dml2 is not None]
    most = max((one for of in settings for one in of.values()), key=dml2_of)
    yield Claim(
        "4", f"dML² is below {MOST_DML2} for all", f"at most {dml2_of(most):.3f} ({most.way})", dml2_of(most) < MOST_DML2
    )
    below = sum(max(dml2_of(of["GCS"]), dml2_of(of["OCS"])) < dml2_of(of["MiRaCle"]) for of in settings)
    yield Claim(
        "4", "dML²: GCS and OCS are below MiRaCle", f"in {below} of {len(settings)} settings", below == len(settings)
    )
    greedy = [dml2_of(of["GCS"]) for of in found.by_n.values()]
    yield Claim(
        "4",
        f"dML² of GCS hardly depends on n (within {STABLE:.0%})",
        f"n = {_told(found.by_n, lambda of: dml2_of(of['GCS']), '.4f')}",
        max(greedy) <= (1 + STABLE) * min(greedy),
    )


# --- 5. time ---------------------------------------------------------------------------------------------------------------


def by_time(found: Found) -> Iterator[Claim]:
    """Seconds of GCS; a budget that ends a search hides what it would take."""
    seconds = {k: of["GCS"].seconds for k, of in found.by_k.items()}
    falls = (1 - seconds[100] / seconds[5], 1 - seconds[300] / seconds[100])
    told = ", ".join(_spent(k, of["GCS"]) for k, of in found.by_k.items())
    yield Claim(
        "5",
        f"Time of GCS falls by {PAPER_TIME[0]:.0%} from k = 5 to 100, by {PAPER_TIME[1]:.1%} more to 300",
        f"{falls[0]:.1%} and {falls[1]:.1%}; k = {told}",
        all(abs(one - two) <= STABLE for one, two in zip(falls, PAPER_TIME, strict=True)),
    )
    by_m = {m: of["GCS"].seconds for m, of in found.by_m.items() if m >= 3}
    yield Claim(
        "5",
        "Time of GCS is least at m = 4 (70.5% less than at 3)",
        "m = " + ", ".join(_spent(m, of["GCS"]) for m, of in found.by_m.items()),
        min(by_m, key=lambda m: by_m[m]) == 4,
    )
    by_n = [of["GCS"].seconds for of in found.by_n.values()]
    yield Claim(
        "5",
        "Time of GCS grows with n",
        "n = " + ", ".join(_spent(n, of["GCS"]) for n, of in found.by_n.items()),
        by_n == sorted(by_n),
    )
    each = {size: of["GCS"].seconds / of["GCS"].cuts / size for size, of in found.by_size.items()}
    yield Claim(
        "5",
        "Time of GCS is linear in the records",
        ", ".join(f"{size:,}: {1e6 * one:.2f} µs per record and cut" for size, one in each.items()),
        max(each.values()) <= LINEAR * min(each.values()),
    )


def _spent(at: int, one: Outcome) -> str:
    return f"{at}: {one.seconds:.1f} s for {one.cuts:,} cuts{'' if one.ended else ' (stopped)'}"


# --- 6. absences -----------------------------------------------------------------------------------------------------------


def by_absence(found: Found) -> Iterator[Claim]:
    """Who knows four things that a record lacks."""
    for way, outcomes in found.absent.items():
        most = max(one.negated for one in outcomes)
        for one in outcomes:
            if one.negated != most or one.level is None:
                continue
            limit = PAPER_ABSENT[one.level]
            what = "values" if one.level == 0 else "groups"
            least = f"the fewest are {one.least}" + (f", {one.share_below:.2%} below k" if one.below else "")
            yield Claim(
                "6",
                f"{way}: with {most} absent {what} known, {'less than ' if one.level == 0 else ''}{limit} individuals per K "
                f"are left with fewer than k = {K}",
                f"{one.affected:.4f}; {one.below} of {one.drawn:,} K; {least}",
                one.affected < limit if one.level == 0 else abs(one.affected / limit - 1) <= NEAR,
            )


# --- ours ------------------------------------------------------------------------------------------------------------------


def ours(found: Found) -> Iterator[Claim]:
    """What the library says itself."""
    every = found.outcomes
    passed = sum(one.verdict.passed for one in every)
    yield Claim(
        "–",
        "Every release is k^(m,n)-anonymous, verified from its paths alone",
        f"{passed} of {len(every)}; {sum(one.verdict.checked for one in every):,} K and records checked",
        passed == len(every),
    )
    settings = [(name, gap(of, "beam")) for name, of in settings_of(found)]
    worse = [f"{name} ({share:+.1%})" for name, share in settings if share > SAME]
    yield Claim(
        "–",
        "The beam, which is the default, loses no more than GCS with the same budget",
        f"in {len(settings) - len(worse)} of {len(settings)} settings{'; not for ' + ', '.join(worse) if worse else ''}",
        not worse,
    )
    settings = [(name, gap(of, "partial", "beam")) for name, of in settings_of(found)]
    worse = [f"{name} ({share:+.1%})" for name, share in settings if share > SAME]
    yield Claim(
        "–",
        "Partial cuts, which are the default, lose no more than full ones by the same search",
        f"in {len(settings) - len(worse)} of {len(settings)} settings{'; not for ' + ', '.join(worse) if worse else ''}; "
        f"RPD from {min(share for _, share in settings):+.1%} to {max(share for _, share in settings):+.1%}",
        not worse,
    )
