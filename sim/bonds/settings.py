"""What a shot says about the bonds, ``[sim.bonds]``.

Symbols: delta horizon, lambda length scale, K bulk modulus, K_c as in levine-2014 eq. 6.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vfx.geometry.handoff.schema import setting


@dataclass(frozen=True)
class BondSettings:
    """Peridynamic bonds that break (levine-2014): what `method = "bonds"` takes.

    Of files written before these keys had a section of their own, they are also taken from
    `[sim]`.
    """

    horizon: float = setting(
        3.0, "Horizon delta in units of lambda: reach of the bonds.", at_least=1.0, at_most=8.0)
    timestep: float | Literal["auto"] = setting(
        2.0**-23, "Time step; \"auto\" is the largest stable one that divides a frame where "
        "time_scale is given, else the largest stable power of two.", unit="s", at_least=1e-21,
        at_most=1e3)
    contact_stiffness: float = setting(
        1e8, "K_c of levine-2014 eq. 6; 0 turns contact off.", unit="Pa",
        at_least=0.0, at_most=1e18)
    contact_distance: float = setting(
        0.5, "Distance below which elements without a bond push each other off, in their size; 0.5 "
        "as in the paper, in which they overlap by half. With method = \"auto\" it is 0.9, so that "
        "pieces are not born in one another.", at_least=0.1, at_most=1.0)
    contact_friction: float = setting(
        0.0, "Coulomb friction of elements that touch without a bond; 0 for none.",
        at_least=0.0, at_most=1e3)
    internal_damping: float = setting(
        0.0, "Damping of vibration, from 0 to the strongest, 1: of how bonded neighbours move "
        "toward each other. It brakes neither flight nor spin.", at_least=0.0, at_most=1.0)
    damping: float = setting(
        0.0, "Rate at which the velocity of every particle decays; 0 for none.", unit="1/s",
        at_least=0.0, at_most=1e18)
    calibrate: bool = setting(
        False, "Scale the bond stiffness so that an interior particle has exactly K.")
    surface_correction: bool = setting(
        False, "Make bonds near surfaces stiffer, for those that are missing there. Walls with one "
        "element more through them than the horizon then bend and stretch as their material does, "
        "to some percent; elements inside have K, as with calibrate. Off, as in the paper.")
    edge_volume: str = setting(
        "full", "Share of a neighbour's volume that counts near the horizon: all of it, or "
        "what falls off to a half over the last lambda/2.", choices=("full", "partial"))
    pieces: str = setting(
        "faces", "When elements that share a face are of one piece: while the bond across that "
        "face holds, as in levine-2014, or \"held\": while half of all bonds between what such "
        "faces divide hold. With method = \"auto\" it is \"held\".", choices=("faces", "held"))
    break_rule: str = setting(
        "larger", "Which of the strain limits of its two ends breaks a bond; the paper takes "
        "the larger.", choices=("larger", "smaller"))
