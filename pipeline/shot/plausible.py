"""What a shot may say, but hardly means: other units than SI's, keys that do not count.

Nothing here is refused: a jelly is soft, and a meteorite fast.
"""

from __future__ import annotations

import math

from vfx.geometry.handoff.bodies import Body
from vfx.pipeline.shot.shot_file import Shot

#: From aerogel to osmium and beyond [kg/m^3].
_LIGHTEST, _HEAVIEST = 20.0, 3e4
#: Softer than gelatine [Pa].
_SOFTEST = 1e3
#: Sand castles bear more [Pa].
_WEAKEST = 1e3
#: Less residual stress does nothing to anything that shatters [Pa].
_LEAST_PRESTRESS = 1e4
#: Rubber tears at more, but not what shatters.
_LARGEST_STRAIN = 0.2


def unit_warnings(shot: Shot) -> list[str]:
    """Return a sentence for each number that is probably in another unit, or does not count."""
    lines = []
    for name in dict.fromkeys(body.material for body in shot.bodies):
        material, where = shot.materials[name], f"materials.{name}"
        if not _LIGHTEST <= material.density <= _HEAVIEST:
            lines.append(f"{where}.density is {material.density:g} kg/m^3; water has 1000, glass "
                         "2500: if it is in g/cm^3, multiply it by 1000")
        if material.bulk_modulus < _SOFTEST:
            lines.append(f"{where}.bulk_modulus is {material.bulk_modulus:g} Pa, softer than "
                         "gelatine; clay has 3e9, glass 35e9: if it is in GPa, multiply it by 1e9")
        if material.strength > 0.0 and material.strain_limit > 0.0:
            lines.append(f"{where}.strength is {material.strength:g} Pa, but whole matter breaks "
                         f"at strain_limit = {material.strain_limit:g}: remove one of them")
        if 0.0 < material.strength < _WEAKEST:
            lines.append(f"{where}.strength is {material.strength:g} Pa; plaster has 2e6, glass "
                         "50e6: if it is in MPa, multiply it by 1e6")
        if 0.0 < material.prestress < _LEAST_PRESTRESS:
            lines.append(f"{where}.prestress is {material.prestress:g} Pa; tempered glass has "
                         "100e6: if it is in MPa, multiply it by 1e6")
        if material.strain_limit > _LARGEST_STRAIN:
            lines.append(f"{where}.strain_limit is {material.strain_limit:g}: bonds break when "
                         f"they are {1.0 + material.strain_limit:g} times as long; brittle things "
                         "break at 0.0005 to 0.01")
    for body in shot.bodies:
        if body.layers != Body.layers and body.shape != "tet-shell":
            lines.append(f"body '{body.name}' has layers = {body.layers}, which counts for shape = "
                         f"\"tet-shell\" alone, but its shape is \"{body.shape}\"")
        material = shot.materials[body.material]
        speed = math.hypot(*body.velocity, body.fall_speed)
        sound = math.sqrt(material.bulk_modulus / material.density)
        if speed > sound:
            lines.append(f"body '{body.name}' moves at {speed:.4g} m/s, faster than sound in its "
                         f"material ({sound:.3g} m/s, from bulk_modulus and density): it will not "
                         "crack, but burst or flatten; see to the units of all three")
    return lines
