/** Counts the prospects inside a territory. */
import { useQuery } from "@tanstack/react-query";
import { answer, api } from "./client.ts";

export const useStats = (id: number) =>
  useQuery({
    queryKey: ["prospects", "territory-stats", id],
    queryFn: () => answer(api.GET("/api/territories/{id}/stats", { params: { path: { id } } })),
  });
