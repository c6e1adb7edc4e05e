/**
 * contrasts runs in a page. It returns the visible texts whose contrast with their background is below that
 * of WCAG 2, level AA: 4.5.
 */
export function contrasts() {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  /** rgba returns a color of CSS as four numbers. */
  const rgba = (css) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = css;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, under, alpha = top[3]) => [0, 1, 2].map((i) => top[i] * alpha + under[i] * (1 - alpha));
  const luminance = (c) => {
    const [r, g, b] = c.map((x) => (x / 255 <= 0.04045 ? x / 255 / 12.92 : ((x / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (e) => (e === null ? [255, 255, 255] : (([...c]) => (c[3] === 1 ? c : over(c, background(e.parentElement))))(rgba(getComputedStyle(e).backgroundColor)));
  const opacity = (e) => (e === null ? 1 : Number(getComputedStyle(e).opacity) * opacity(e.parentElement));
  const bad = new Map();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = walk.nextNode(); n; n = walk.nextNode()) {
    const e = n.parentElement;
    if (!n.data.trim() || !e.checkVisibility({ visibilityProperty: true })) continue;
    const under = background(e), color = rgba(getComputedStyle(e).color);
    const [a, b] = [luminance(over(color, under, color[3] * opacity(e))), luminance(under)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const kind = `${e.tagName.toLowerCase()}.${e.className} in ${e.parentElement.tagName.toLowerCase()}.${e.parentElement.className}`;
    if (ratio < 4.5 && !bad.has(kind)) bad.set(kind, `${kind} "${n.data.trim().slice(0, 30)}": ${ratio.toFixed(2)}`);
  }
  return [...bad.values()];
}
