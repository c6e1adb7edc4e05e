export * from "./inputs.js";
export * from "./message.js";
export * from "./schema.js";
