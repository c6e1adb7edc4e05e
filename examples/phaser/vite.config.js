import { defineConfig } from "vite";

// The page asks its own server for the game's address, and Vite asks the game.
const game = process.env.GAME ?? "http://127.0.0.1:8000";

export default defineConfig({
  build: { chunkSizeWarningLimit: 2000 },
  server: { proxy: { "/connect.json": { target: game, changeOrigin: true } } }, // so that the WebSocket is the game's
});
