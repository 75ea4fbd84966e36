"""Mesh files with bad intentions: pictures that are programs, and small files that multiply."""

from __future__ import annotations

import base64
import bz2
import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

POSTSCRIPT = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 4 4\n(hostile) print showpage\n"
"""Pillow starts Ghostscript for it, whatever the file is called."""

TRIANGLE = struct.pack("<9f", 0, 0, 0, 1, 0, 0, 0, 1, 0)
PLACES = struct.pack("<6f", 0, 0, 1, 0, 0, 1)


# -- builders -------------------------------------------------------------------------------------


SQUARE = "0 0 0 1 0 0 1 1 0 0 1 0"


def collada(primitives: str, positions: str = SQUARE, nodes: str = "", picture: str = "skin.png") -> bytes:
    """A COLLADA file with one geometry g of these primitives; nodes stand beside the one that shows it."""
    instance = (
        '<instance_geometry url="#g"><bind_material><technique_common>'
        '<instance_material symbol="mat" target="#m"/></technique_common></bind_material></instance_geometry>'
    )
    return f"""<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
<library_images><image id="img"><init_from>{picture}</init_from></image></library_images>
<library_effects><effect id="e"><profile_COMMON>
<technique sid="c"><lambert><diffuse><texture texture="img" texcoord="UV"/></diffuse></lambert></technique>
</profile_COMMON></effect></library_effects>
<library_materials><material id="m"><instance_effect url="#e"/></material></library_materials>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="pa">{positions}</float_array></source>
<source id="u"><float_array id="ua">0 0 1 0 1 1 0 1</float_array>
<technique_common><accessor source="#ua" count="4" stride="2"/></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
{primitives}
</mesh></geometry></library_geometries>
<library_visual_scenes>
<visual_scene id="w"><node>{instance}</node>{nodes}</visual_scene>
</library_visual_scenes>
<scene><instance_visual_scene url="#w"/></scene></COLLADA>""".encode()


VERTEX = '<input semantic="VERTEX" source="#v" offset="0"/>'
COVERED = VERTEX + '<input semantic="TEXCOORD" source="#u" offset="0"/>'


def gltf(buffer: bytes = TRIANGLE + PLACES, **changes) -> bytes:
    """A glTF of one triangle with its numbers inside; changes replace parts of the text."""
    tree = {
        "asset": {"version": "2.0"},
        "buffers": [{"uri": data_uri(buffer), "byteLength": len(buffer)}],
        "bufferViews": [{"buffer": 0, "byteLength": 36}, {"buffer": 0, "byteOffset": 36, "byteLength": 24}],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"},
            {"bufferView": 1, "componentType": 5126, "count": 3, "type": "VEC2"},
        ],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "nodes": [{"mesh": 0}],
        "scenes": [{"nodes": [0]}],
        "scene": 0,
    }
    return json.dumps({**tree, **changes}).encode()


def painted(image: dict, buffer: bytes = TRIANGLE + PLACES, **changes) -> bytes:
    """The same with a picture on it."""
    primitive = {"attributes": {"POSITION": 0, "TEXCOORD_0": 1}, "material": 0}
    return gltf(
        buffer,
        meshes=[{"primitives": [primitive]}],
        materials=[{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}],
        textures=[{"source": 0}],
        images=[image],
        **changes,
    )


def data_uri(content: bytes) -> str:
    return "data:application/octet-stream;base64," + base64.b64encode(content).decode()


def glb(tree: bytes, buffer: bytes) -> bytes:
    """A GLB of a text and a buffer."""
    text, stored = tree + b" " * (-len(tree) % 4), buffer + b"\0" * (-len(buffer) % 4)
    body = struct.pack("<I", len(text)) + b"JSON" + text + struct.pack("<I", len(stored)) + b"BIN\0" + stored
    return b"glTF" + struct.pack("<II", 2, 12 + len(body)) + body


def ply(body: str | bytes, vertices: int, faces: int, form: str = "ascii", extra: str = "") -> bytes:
    head = (
        f"ply\nformat {form} 1.0\n{extra}element vertex {vertices}\n"
        + "".join(f"property float {axis}\n" for axis in "xyz")
        + f"element face {faces}\nproperty list uchar int vertex_indices\nend_header\n"
    )
    return head.encode() + (body.encode() if isinstance(body, str) else body)


def zipped(name: str) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(name, bytes(50_000_000))
    return content.getvalue()


# -- pictures that are programs -------------------------------------------------------------------

OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 0 1\nusemtl paint\nf 1/1 2/2 3/3\n"


def write_programs(folder: Path) -> list[Path]:
    """Meshes whose pictures are PostScript, each by another way.

    Returns:
        Their paths.
    """
    skin = {"mimeType": "image/png"}
    stored = TRIANGLE + PLACES + POSTSCRIPT
    views = [
        {"buffer": 0, "byteLength": 36},
        {"buffer": 0, "byteOffset": 36, "byteLength": 24},
        {"buffer": 0, "byteOffset": 60, "byteLength": len(POSTSCRIPT)},
    ]
    inside = painted({"bufferView": 2, **skin}, bufferViews=views, buffers=[{"byteLength": len(stored)}])
    square = f'<polygons material="mat">{COVERED}<p>0 1 2 3</p></polygons>'
    covered = "property float s\nproperty float t\n"
    points = "0 0 0 0 0\n1 0 0 1 0\n0 1 0 0 1\n3 0 1 2\n"
    textured = ply(points, 3, 1).replace(b"float z\n", b"float z\n" + covered.encode())
    files = {
        "beside.gltf": painted({"uri": "skin.png", **skin}),
        "data.gltf": painted({"uri": data_uri(POSTSCRIPT), **skin}),
        "inside.glb": glb(inside, stored),
        "beside.dae": collada(square),
        "beside.obj": b"mtllib skin.mtl\n" + OBJ.encode(),
        "other_case.obj": b"mtllib skin2.mtl\n" + OBJ.encode(),
        "itself.obj": b"mtllib program.mtl\n" + OBJ.encode(),
        "beside.ply": textured.replace(b"element vertex", b"comment TextureFile skin.png\nelement vertex"),
        # Where the head ends is not where a quick search would find it.
        "late.ply": textured.replace(
            b"element vertex", b"comment an_end_header\ncomment texturefile program.mtl\nelement vertex"
        ),
    }
    for name in ("skin.png", "skin.jpg", "skin.tga", "program.mtl"):
        (folder / name).write_bytes(POSTSCRIPT)
    (folder / "skin.mtl").write_text("newmtl paint\nKd 1 0 0\nmap_Kd skin.png\n")
    (folder / "skin2.mtl").write_text("newmtl paint\n  MAP_kd\tskin.tga\nimage skin.png\n")
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in files]


# -- small files that multiply --------------------------------------------------------------------


def many_corners(count: int) -> str:
    return " ".join(f"{k} 0 {k % 7}" for k in range(count))


def polylist(sizes: str) -> bytes:
    return collada(f"<polylist>{VERTEX}<vcount>{sizes}</vcount><p>0 1 2 3</p></polylist>")


def instances(count: int, triangles: int) -> bytes:
    faces = " ".join(str(k) for k in range(3 * triangles))
    nodes = '<node><instance_geometry url="#g"/></node>' * count
    return collada(f"<triangles>{VERTEX}<p>{faces}</p></triangles>", many_corners(3 * triangles), nodes)


def primitive_lists(count: int, corners: int) -> bytes:
    return collada(f"<triangles>{VERTEX}<p>0 1 2</p></triangles>" * count, many_corners(corners))


def nodes_of_nodes(depth: int) -> bytes:
    nodes = "".join(
        f'<node id="n{k}"><instance_node url="#n{k + 1}"/><instance_node url="#n{k + 1}"/></node>'
        for k in range(depth)
    )
    return collada(f"<triangles>{VERTEX}<p>0 1 2</p></triangles>", nodes=nodes)


def node_of_itself(count: int) -> bytes:
    """A node that places itself many times: a list of all places yet to come grows faster than the scene."""
    return collada("", nodes='<node id="n">' + '<instance_node url="#n"/>' * count + "</node>")


def empty_instances(instances: int, nodes: int) -> bytes:
    """A node with many instances of nothing, placed many times."""
    node = '<node id="n">' + '<instance_geometry url="#none"/>' * instances + "</node>"
    return collada("", nodes=node + '<node><instance_node url="#n"/></node>' * nodes)


def nested_geometries(depth: int, primitives: int) -> bytes:
    """Geometries inside each other, so that each has the primitives of all within."""
    inner = f"<triangles>{VERTEX}<p>0 1 2</p></triangles>" * primitives
    opened = "".join(f'<geometry id="g{k}">' for k in range(depth))
    nodes = "".join(f'<node><instance_geometry url="#g{k}"/></node>' for k in range(depth))
    return collada(opened + inner + "</geometry>" * depth, nodes=nodes)


def attribute_entities() -> bytes:
    entities = '<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {chr(98 + k)} "{f"&{chr(97 + k)};" * 10}">' for k in range(9)
    )
    return f'<!DOCTYPE COLLADA [{entities}]><COLLADA x="&j;"/>'.encode()


def gltf_instances(count: int) -> bytes:
    return gltf(nodes=[{"mesh": 0}] * count, scenes=[{"nodes": list(range(count))}])


def gltf_accessor(**changes) -> bytes:
    accessor = {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3", **changes}
    return gltf(accessors=[{k: v for k, v in accessor.items() if v is not None}])


def gltf_primitives(count: int) -> bytes:
    """Primitives that share 20,000 zeros, which no bytes of the file stand for."""
    return gltf(
        accessors=[{"componentType": 5126, "count": 20_000, "type": "VEC3"}],
        meshes=[{"primitives": [{"attributes": {"POSITION": 0}}] * count}],
    )


def overlapping_pictures(count: int) -> bytes:
    """Pictures that are all the same 9,036 bytes of the file."""
    primitives = [{"attributes": {"POSITION": 0, "TEXCOORD_0": 1}, "material": k} for k in range(count)]
    return gltf(
        TRIANGLE + bytes(9_000),
        bufferViews=[{"buffer": 0, "byteLength": 9_036}] * 2,
        meshes=[{"primitives": primitives}],
        materials=[{"pbrMetallicRoughness": {"baseColorTexture": {"index": k}}} for k in range(count)],
        textures=[{"source": k} for k in range(count)],
        images=[{"bufferView": 0}] * count,
    )


def obj_materials(materials: int, vertices: int) -> bytes:
    text = "".join(f"v {k} 0 {k % 3}\n" for k in range(vertices))
    return (text + "".join(f"usemtl m{k}\nf 1 2 3\n" for k in range(materials))).encode()


def sparse(count: int) -> dict:
    return {
        "count": count,
        "indices": {"bufferView": 0, "byteOffset": 12, "componentType": 5125},
        "values": {"bufferView": 0},
    }


MULTIPLYING: dict[str, tuple[Callable[[], bytes], str]] = {
    # name: (content, what the error says)
    "vcount.dae": (lambda: polylist("1000000000"), "polygons ask for 1,000,000,000 corners, and there are 4"),
    "vcounts.dae": (lambda: polylist("4 " * 100_000), "polygons ask for 400,000 corners"),
    "negative_vcount.dae": (lambda: polylist("-4 8"), "polygons ask for 4 corners"),
    "nan_vcount.dae": (lambda: polylist("nan"), "<vcount> holds something else than whole numbers"),
    "huge_vcount.dae": (lambda: polylist("9" * 30), "<vcount> holds something else than whole numbers"),
    "offset.dae": (
        lambda: collada(f"<triangles>{VERTEX.replace('0', '1000000000')}<p>0 1 2</p></triangles>"),
        "offset 1000000000; accepted are 0 to 63",
    ),
    "instances.dae": (lambda: instances(3_000, 20_000), "holds more than [0-9,]+ triangles; accepted are"),
    "nodes.dae": (lambda: nodes_of_nodes(40), "more than [0-9,]+ nodes and instances"),
    "itself.dae": (lambda: node_of_itself(10_000), "more than [0-9,]+ nodes and instances"),
    "nothing.dae": (lambda: empty_instances(5_000, 5_000), "more than [0-9,]+ nodes and instances"),
    "nested.dae": (lambda: nested_geometries(50, 100), "more than [0-9,]+ pieces"),
    "entities.dae": (attribute_entities, "DOCTYPE"),
    "entities16.dae": (lambda: attribute_entities().decode().encode("utf-16"), "DOCTYPE"),
    "deep.dae": (lambda: b"<COLLADA>" + b"<a>" * 100_000, "not well formed"),
    "tags.dae": (lambda: b"<COLLADA>" + b"<a/>" * 4_000_001 + b"</COLLADA>", "4,000,003 tags; at most"),
    "infinite.dae": (
        lambda: collada(
            f"<triangles>{VERTEX}<p>0 1 2</p></triangles>",
            nodes='<node><scale>1e999 1 1</scale><instance_geometry url="#g"/></node>',
        ),
        "a transform of the scene is not finite",
    ),
    "mesh.bz2": (lambda: 50 * bz2.compress(bytes(10**6)), r"ends in '\.bz2'; mesh files are \.stl, \.obj"),
    "mesh.stl.gz": (lambda: b"\x1f\x8b", r"ends in '\.gz'"),
    "mesh.zip": (lambda: zipped("a.stl"), r"ends in '\.zip'"),
    "mesh.3mf": (lambda: zipped("3D/3dmodel.model"), r"ends in '\.3mf'"),
    "mesh.zae": (lambda: zipped("a.dae"), r"ends in '\.zae'"),
    "mesh.3dxml": (lambda: zipped("Manifest.xml"), r"ends in '\.3dxml'"),
    "mesh.off": (lambda: b"OFF\n3 1 0\n", r"ends in '\.off'"),
    "mesh": (lambda: b"solid", "has no ending; mesh files are"),
    "lying.stl": (lambda: b"x" * 80 + struct.pack("<I", 10**9) + bytes(500), "1,000,000,000 triangles"),
    "solids.stl": (lambda: b"solid a endsolid a " * 60_000, "the STL has 60,000 solids on lines with others"),
    "vertices.ply": (lambda: ply("0 0 0\n", 10**9, 1), r"the PLY asks for [0-9,]+ bytes at least"),
    "binary.ply": (lambda: ply(bytes(60), 10**9, 1, "binary_little_endian"), r"asks for [0-9,]+ bytes"),
    "negative.ply": (lambda: ply("0 0 0\n", -5, 1), "count '-5', not a whole number"),
    "properties.ply": (
        lambda: ply("0 0 0\n" * 3 + "3 0 1 2\n", 3, 1, extra="".join(f"element e{k} 0\n" for k in range(99))),
        "more than 64 elements or properties",
    ),
    "head.ply": (lambda: ply("", 0, 0, extra="comment x\n" * 10_000), "head of a PLY, 65536 bytes"),
    "materials.obj": (lambda: obj_materials(1_900, 90_000), "1,900 materials for 90,000 vertices"),
    "usemtl.obj": (lambda: obj_materials(20_000, 3), "has 20,000 materials; at most 2,000 are read"),
    "twice.gltf": (lambda: gltf(nodes=[{"mesh": 0, "children": [0]}]), "node 0 is placed twice"),
    "count.gltf": (lambda: gltf_accessor(count=10**9), "count is 1000000000; there is room for"),
    "rows.gltf": (lambda: gltf_accessor(count=1000), "accessor of 1,000 rows does not fit its 36 bytes"),
    "start.gltf": (lambda: gltf_accessor(byteOffset=4), "accessor of 3 rows does not fit its 36 bytes"),
    "real.gltf": (lambda: gltf_accessor(count=2.5), "count is 2.5"),
    "matrix.gltf": (lambda: gltf_accessor(type="MAT4"), "a type that meshes do not use"),
    "view.gltf": (
        lambda: gltf(bufferViews=[{"buffer": 0, "byteOffset": 40, "byteLength": 36}]),
        "byteLength is 36; there is room for a whole number from 0 to 20",
    ),
    "buffer.gltf": (
        lambda: gltf(buffers=[{"uri": data_uri(b"1234"), "byteLength": 10**9}]),
        "byteLength is 1000000000; there is room for a whole number from 0 to 4",
    ),
    "zeros.gltf": (lambda: gltf_primitives(5_000), "holds more than [0-9,]+ triangles"),
    "sparse.gltf": (lambda: gltf_accessor(sparse=sparse(10**9)), "count of a sparse accessor is 1000000000"),
    "sparse_rows.gltf": (
        lambda: gltf_accessor(sparse=sparse(3)),
        "a sparse accessor names row 1065353216 of 3",
    ),
    "draco.gltf": (
        lambda: gltf(extensionsRequired=["KHR_draco_mesh_compression"]),
        "requires the extension KHR_draco_mesh_compression",
    ),
    "nan.gltf": (
        lambda: gltf(nodes=[{"mesh": 0, "scale": [float("nan")] * 3}]),
        "its text is no JSON: NaN is no number",
    ),
    "deep.gltf": (lambda: b"[" * 100_000, "not well formed: RecursionError"),
    "entries.gltf": (lambda: b"[" + b"0," * 4_000_001 + b"0]", "4,000,002 entries; at most 4,000,000"),
    "list.gltf": (lambda: b"[]", "not glTF 2.0"),
    "wrong.gltf": (lambda: gltf(meshes=[3]), "meshes is not a list of objects"),
    "pictures.gltf": (
        lambda: overlapping_pictures(99),
        "pictures have more bytes than the file",
    ),
}
"""Small files that claim, place or unpack to far more than they hold."""
