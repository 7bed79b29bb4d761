// The window's width in pixels, as it is now.

import { useEffect, useState } from "preact/hooks";

export const NARROW = 700; // as in the style sheet
const LEAST = 240; // a window is narrower for moments, as while it is printed

export function useWidth(): number {
  const read = () => Math.max(LEAST, document.documentElement.clientWidth);
  const [width, set] = useState(read);
  useEffect(() => {
    const changed = () => set(read());
    window.addEventListener("resize", changed);
    return () => window.removeEventListener("resize", changed);
  }, []);
  return width;
}
