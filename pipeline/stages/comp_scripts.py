"""Scripts that load a hand-off in Nuke and in Blender, with its passes and Cryptomattes set up.

Both find the frames relative to themselves, so that a work folder can be moved or mounted
elsewhere. What they set up comes from the manifest alone, which comes from the files.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

Document = dict[str, Any]

_NUKE_FOLDER = r"\[file dirname \[value root.name]]"
_BUILT_IN_LAYERS = ("beauty", "depth", "forward", "rgba", "rgb", "alpha")
_COLUMN, _ROW = 180, 110                 # between nodes in the graph [pixels]


def nuke_script(document: Document) -> str:
    """Return a Nuke script: a Read a sequence, a Shuffle a pass, Cryptomattes, the camera."""
    width, height = document["resolution"]
    lines = [
        f"# {document['shot']}, frames {document['frames']}: "
        f"linear {_tcl_comment(document['color_space']['name'])}, as rendered.",
        "# Files are read raw: set the project's working space to the one named above.",
        "version 12.0 v1", "Root {", " inputs 0", f" first_frame {document['first']}",
        f" last_frame {document['last']}", f" frame {document['first']}", " lock_range true",
        f" fps {document['fps']:g}",
        f" format \"{width} {height} 0 0 {width} {height} {document['pixel_aspect']:g} "
        f"{document['shot']}\"", "}"]
    for sequence in document["sequences"]:
        for layer in sequence["passes"]:
            if layer["layer"] not in _BUILT_IN_LAYERS:
                words = map(_tcl_word, (layer["layer"], *layer["channels"]))
                lines.append(f"add_layer {{{' '.join(words)}}}")
    for row, sequence in enumerate(document["sequences"]):
        lines += _nuke_sequence(document, sequence, 4 * row * _ROW)
    return "\n".join([*lines, *_nuke_camera(document["camera"])]) + "\n"


def _nuke_sequence(document: Document, sequence: dict[str, Any], y: int) -> list[str]:
    name = _node_name(sequence["name"])
    lines = _nuke_node("Read", 0, [
        ("file", f"\"{_NUKE_FOLDER}/{sequence['pattern']}\""),
        ("file_type", "exr"), ("first", document["first"]), ("last", document["last"]),
        ("origfirst", document["first"]), ("origlast", document["last"]), ("origset", "true"),
        ("on_error", "error"), ("raw", "true"), ("name", f"Read_{name}"),
        ("xpos", 0), ("ypos", y)])
    variable = f"N{name}"
    lines.append(f"set {variable} [stack 0]")
    column = 1
    for matte in sequence["cryptomattes"]:
        lines += [f"push ${variable}", *_nuke_node("Cryptomatte", 1, [
            ("name", f"Cryptomatte_{_node_name(matte['name'])}"),
            ("cryptoLayer", _tcl_word(matte["name"])), ("cryptoLayerLock", "true"),
            ("xpos", column * _COLUMN), ("ypos", y + _ROW)])]
        column += 1
    for layer in sequence["passes"]:
        if layer["layer"] == "beauty" or _is_matte(layer["layer"], sequence):
            continue
        if len(layer["channels"]) == 1:
            wiring = [("red", "red"), ("green", "red"), ("blue", "red"), ("alpha", "white")]
        else:
            wiring = [("alpha", "white")]
        lines += [f"push ${variable}", *_nuke_node("Shuffle", 1, [
            ("in", _tcl_word(layer["layer"])), *wiring,
            ("name", f"Pass_{_node_name(layer['layer'])}"),
            ("label", f"\"{_tcl_quoted(layer['what'])}\""),
            ("postage_stamp", "true"), ("xpos", column * _COLUMN), ("ypos", y + _ROW)])]
        column += 1
    return lines


def _nuke_camera(camera: dict[str, Any]) -> list[str]:
    """Return the camera; Nuke's matrix is for column vectors, row by row."""
    frames = camera["frames"]
    if not frames:
        return []
    matrix = [np.linalg.inv(np.reshape(entry["world_to_camera"], (4, 4))).T for entry in frames]
    numbers = [entry["frame"] for entry in frames]
    rows = ("{" + " ".join(_nuke_curve(numbers, [each[i, j] for each in matrix])
                           for j in range(4)) + "}" for i in range(4))
    return _nuke_node("Camera2", 0, [
        ("useMatrix", "true"), ("matrix", "{" + " ".join(rows) + "}"),
        ("focal", _nuke_curve(numbers, [entry["focal_length"] for entry in frames])),
        ("haperture", f"{camera['film_width']:.9g}"),
        ("vaperture", f"{camera['film_height']:.9g}"), ("name", "ShotCamera"),
        ("xpos", -_COLUMN), ("ypos", 0)])


def _nuke_curve(frames: list[int], values: list[float]) -> str:
    """Return a value as a knob has it: one number, or a curve if it changes."""
    if len(set(values)) == 1:
        return f"{values[0]:.9g}"
    return "{curve " + " ".join(f"x{frame} {value:.9g}"
                                for frame, value in zip(frames, values, strict=True)) + "}"


def _nuke_node(kind: str, inputs: int, knobs: list[tuple[str, Any]]) -> list[str]:
    head = [" inputs 0"] if inputs == 0 else []
    return [f"{kind} {{", *head, *(f" {name} {value}" for name, value in knobs), "}"]


def blender_script(document: Document) -> str:
    """Return a Blender script (4.2 or newer): ``blender --python <file>``."""
    return _BLENDER.replace("@DOCUMENT@", _python_literal({
        key: document[key] for key in ("shot", "first", "last", "fps", "resolution",
                                       "color_space", "camera", "sequences")}))


def _python_literal(document: Document) -> str:
    """Return what the script needs, without the list of files."""
    slim = dict(document)
    frames = document["camera"]["frames"]
    views = [(entry["world_to_camera"], entry["focal_length"]) for entry in frames]
    if all(view == views[0] for view in views):
        frames = frames[:1]                # at rest
    slim["camera"] = {**document["camera"], "frames": [
        {key: entry[key] for key in ("frame", "world_to_camera", "focal_length")}
        for entry in frames]}
    slim["sequences"] = [
        {"name": sequence["name"], "pattern": sequence["pattern"],
         "passes": [{"layer": layer["layer"], "channels": layer["channels"]}
                    for layer in sequence["passes"]],
         "cryptomattes": sequence["cryptomattes"]}
        for sequence in document["sequences"]]
    lines = [f"    {key!r}: {value!r}," for key, value in slim.items()]
    return "{\n" + "\n".join(lines) + "\n}"


_BLENDER = '''\
"""Loads a rendered sequence into Blender's compositor: blender --python THIS_FILE

Sets the frame range, size and camera of the scene, adds an Image node for each sequence, with
all its passes as outputs, and a Cryptomatte node for each Cryptomatte.
"""

import math
import os

import bpy
from mathutils import Matrix

HANDOFF = @DOCUMENT@
HERE = os.path.dirname(os.path.abspath(__file__))


def load_sequence(sequence):
    """Return the image of a sequence; Blender finds the other frames by the first one's name."""
    path = os.path.normpath(os.path.join(HERE, sequence["pattern"] % HANDOFF["first"]))
    image = bpy.data.images.load(path)
    image.name = sequence["name"]
    if HANDOFF["first"] != HANDOFF["last"]:
        image.source = "SEQUENCE"
    if sequence["cryptomattes"]:
        # Ids are no colours: a conversion would change them.
        image.colorspace_settings.name = "Non-Color"
    return image


def play(node):
    """Let a node's image follow the scene's frame."""
    node.frame_start = HANDOFF["first"]
    node.frame_offset = HANDOFF["first"] - 1
    node.frame_duration = HANDOFF["last"] - HANDOFF["first"] + 1
    node.use_auto_refresh = True


def compositor(scene):
    """Return an empty compositor tree of the scene, and the input that its picture goes to."""
    if hasattr(scene, "compositing_node_group"):                    # Blender 5
        tree = bpy.data.node_groups.new(HANDOFF["shot"], "CompositorNodeTree")
        tree.interface.new_socket("Image", in_out="OUTPUT", socket_type="NodeSocketColor")
        scene.compositing_node_group = tree
        output = tree.nodes.new("NodeGroupOutput")
        output.location = (1100, 0)
        return tree, output.inputs[0]
    scene.use_nodes = True
    tree = scene.node_tree
    tree.nodes.clear()
    output = tree.nodes.new("CompositorNodeComposite")
    output.location = (1100, 0)
    return tree, output.inputs["Image"]


def add_nodes(tree, picture):
    """Add the nodes of all sequences; the beauty goes to the picture."""
    for row, sequence in enumerate(HANDOFF["sequences"]):
        image = load_sequence(sequence)
        node = tree.nodes.new("CompositorNodeImage")
        node.name = node.label = sequence["name"]
        node.location = (0, -600 * row)
        node.image = image
        if image.source == "SEQUENCE":
            play(node)
        if row == 0:
            beauty = node.outputs.get("Combined") or node.outputs.get("Image") or node.outputs[0]
            tree.links.new(beauty, picture)
        for column, matte in enumerate(sequence["cryptomattes"]):
            crypto = tree.nodes.new("CompositorNodeCryptomatteV2")
            crypto.name = crypto.label = matte["name"]
            crypto.location = (400 + 320 * column, -600 * row)
            crypto.source = "IMAGE"
            crypto.image = image
            if image.source == "SEQUENCE":
                play(crypto)
            crypto.layer_name = matte["name"]
            if row:
                tree.links.new(tree.nodes[HANDOFF["sequences"][0]["name"]].outputs[0],
                               crypto.inputs["Image"])


def add_camera(scene):
    """Add the shot's camera; Blender's z is up where the shot's y is."""
    about = HANDOFF["camera"]
    camera = bpy.data.objects.new(HANDOFF["shot"] + "_camera", bpy.data.cameras.new("camera"))
    scene.collection.objects.link(camera)
    camera.data.sensor_fit = "HORIZONTAL"
    camera.data.sensor_width = about["film_width"]
    camera.rotation_mode = "QUATERNION"
    z_from_y = Matrix.Rotation(math.radians(90.0), 4, "X")
    for entry in about["frames"]:
        rows = [entry["world_to_camera"][4 * i:4 * i + 4] for i in range(4)]
        camera.matrix_world = z_from_y @ Matrix(rows).transposed().inverted()
        camera.data.lens = entry["focal_length"]
        if len(about["frames"]) > 1:
            camera.keyframe_insert("location", frame=entry["frame"])
            camera.keyframe_insert("rotation_quaternion", frame=entry["frame"])
            camera.data.keyframe_insert("lens", frame=entry["frame"])
    scene.camera = camera


def main():
    """Set the scene up."""
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end = HANDOFF["first"], HANDOFF["last"]
    scene.frame_set(HANDOFF["first"])
    scene.render.fps = round(HANDOFF["fps"])
    scene.render.fps_base = scene.render.fps / HANDOFF["fps"]
    scene.render.resolution_x, scene.render.resolution_y = HANDOFF["resolution"]
    scene.render.resolution_percentage = 100
    add_nodes(*compositor(scene))
    if HANDOFF["camera"]["frames"]:
        add_camera(scene)


main()
'''


def _is_matte(layer: str, sequence: dict[str, Any]) -> bool:
    return any(re.fullmatch(re.escape(matte["name"]) + r"(\d\d)?", layer)
               for matte in sequence["cryptomattes"])


def _node_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", text)


def _tcl_quoted(text: str) -> str:
    return re.sub(r'([\\"$\[\]{}])', r"\\\1", _one_line(text))


def _tcl_word(text: str) -> str:
    """Return a name as a word in which nothing is left to evaluate, now or by a knob later."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)


def _tcl_comment(text: str) -> str:
    return re.sub(r"[{}\\]", " ", _one_line(text))


def _one_line(text: str) -> str:
    return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", " ", text)
