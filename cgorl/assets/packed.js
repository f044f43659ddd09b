// Reads what cgorl/report/graphs/packed.py writes: JSON data with typed arrays that lie in memory as they came.

const TYPES = { uint8: Uint8Array, uint32: Uint32Array, int32: Int32Array, float32: Float32Array };

export async function unpack(bytes) {
  const raw = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const data = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  for (const { name, dtype, at, length: n } of data.arrays) data[name] = new TYPES[dtype](buffer, 4 + length + at, n);
  return data;
}
