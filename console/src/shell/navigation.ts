/** The pages in the navigation. */
import type { IconName } from "../ui/icon.tsx";

export interface Destination {
  readonly path: string;
  readonly name: string;
  readonly icon: IconName;
  readonly adminsOnly?: boolean;
}

export const destinations: readonly Destination[] = [
  { path: "/field", name: "Field mode", icon: "walk" },
  { path: "/map", name: "Map", icon: "map" },
  { path: "/prospects", name: "Prospects", icon: "list" },
  { path: "/territories", name: "Territories", icon: "shape" },
  { path: "/activity", name: "Activity", icon: "chart" },
  { path: "/files", name: "Imports and exports", icon: "files" },
  { path: "/webhooks", name: "Webhooks", icon: "webhook", adminsOnly: true },
  { path: "/service-accounts", name: "Service accounts", icon: "key", adminsOnly: true },
  { path: "/users", name: "Users", icon: "people" },
];
