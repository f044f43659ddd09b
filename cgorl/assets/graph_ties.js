// What hangs on what in a drawing: the boxes above and below each box, and the pieces of line that it is at either end of.

export function ties(scene) {
  const count = scene.op.length;
  const above = Array.from({ length: count }, () => []);
  const below = Array.from({ length: count }, () => []);
  const pieces = Array.from({ length: count }, () => []); // pieces of line that a box is at either end of
  const owner = new Int32Array(scene.x.length).fill(-1);
  for (let k = 0; k < count; k++) owner[k] = k;
  const links = scene.links;
  const into = new Map(); // a point that a line passes through: the piece that leads to it
  for (let p = 0; p < links.length; p += 2) {
    const [a, b] = [links[p], links[p + 1]];
    if (b >= count) {
      owner[b] = owner[a];
      into.set(b, p);
    }
  }
  for (let p = 0; p < links.length; p += 2) {
    const [a, b] = [links[p], links[p + 1]];
    const from = owner[a];
    pieces[from].push(p);
    if (b < count) {
      above[b].push(from);
      below[from].push(b);
      pieces[b].push(p);
      for (let at = a; at >= count; at = links[into.get(at)]) pieces[b].push(into.get(at));
    }
  }
  return { above, below, pieces };
}
