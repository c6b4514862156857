// The page's data: JSON, and arrays one after another in gzipped bytes (written by `pack.py`).

const KINDS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i2: Int16Array };

export async function loadContent() {
  const content = JSON.parse(document.getElementById("content").textContent);
  const held = document.getElementById("arrays");
  const bytes = Uint8Array.from(atob(held.textContent), (sign) => sign.charCodeAt(0));
  held.remove();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const buffer = await new Response(stream).arrayBuffer();
  for (const stage of content.stages) {
    unpack(stage, buffer);
    unpack(stage.notes, buffer);
    for (const decoder of stage.decoders) {
      unpack(decoder, buffer);
      decoder.rowOf = new Map(Array.from(decoder.row, (problem, row) => [problem, row]));
    }
  }
  return content;
}

function unpack(holder, buffer) {
  for (const [name, place] of Object.entries(holder)) {
    if (place && typeof place === "object" && "at" in place && place.type in KINDS) {
      holder[name] = new KINDS[place.type](buffer, place.at, place.n);
    }
  }
}
