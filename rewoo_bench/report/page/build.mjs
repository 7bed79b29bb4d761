// Bundles src/ into built/, which is committed: `npm ci && npm run build`.
import { build } from "esbuild";

const shared = { bundle: true, minify: true, charset: "ascii", legalComments: "none", logLevel: "warning" };
await build({
  ...shared,
  entryPoints: ["src/main.tsx"],
  outfile: "built/report.js",
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
});
await build({ ...shared, entryPoints: ["src/report.css"], outfile: "built/report.css" });
