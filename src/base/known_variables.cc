#include "base/known_variables.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/config.h"
#include "base/text.h"

namespace talaria {
namespace {

const VariableGroup kWithoutEffect[] = {
    {"logging, files and parameters (values are read anew for each communicator, so there is no cache)",
     "NCCL_TOPO_FILE NCCL_TOPO_DUMP_FILE NCCL_TOPO_DUMP_FILE_RANK NCCL_GRAPH_FILE NCCL_GRAPH_DUMP_FILE "
     "NCCL_GRAPH_DUMP_FILE_RANK NCCL_NO_CACHE NCCL_SET_THREAD_NAME NCCL_NVTX_DISABLE NCCL_REPORT_CONNECT_PROGRESS "
     "NCCL_PROXY_DUMP_SIGNAL NCCL_RMA_PROXY_DUMP_SIGNAL"},
    {"sockets, bootstrap and identity",
     "NCCL_SOCKET_MAGIC NCCL_SOCKET_POLL_TIMEOUT_MSEC NCCL_SOCKET_NTHREADS NCCL_NSOCKS_PERTHREAD NCCL_SOCKET_INLINE "
     "NCCL_SOCKET_MIN_TASKSIZE NCCL_SOCKET_RCVBUF NCCL_SOCKET_SNDBUF NCCL_OOB_NET_ENABLE NCCL_OOB_NET_IFNAME "
     "NCCL_UID_STAGGER_THRESHOLD NCCL_UID_STAGGER_RATE NCCL_IPC_USE_ABSTRACT_SOCKET NCCL_IGNORE_CPU_AFFINITY "
     "NCCL_PROXY_CPUSET NCCL_ENABLE_VERSION_CHECK"},
    {"algorithms, channels and launch",
     "NCCL_THREAD_THRESHOLDS NCCL_NTHREADS NCCL_LL128_NTHREADS NCCL_MIN_NCHANNELS NCCL_MAX_NCHANNELS NCCL_NRINGS "
     "NCCL_MIN_NRINGS NCCL_MAX_NRINGS NCCL_MIN_P2P_NCHANNELS NCCL_MAX_P2P_NCHANNELS NCCL_NCHANNELS_PER_NET_PEER "
     "NCCL_BUFFSIZE NCCL_LL_BUFFSIZE NCCL_LL128_BUFFSIZE NCCL_P2P_NET_CHUNKSIZE NCCL_P2P_PCI_CHUNKSIZE "
     "NCCL_P2P_NVL_CHUNKSIZE NCCL_CHUNK_SIZE NCCL_NVLS_CHUNKSIZE NCCL_NVLSTREE_MAX_CHUNKSIZE NCCL_P2P_LL_THRESHOLD "
     "NCCL_ALLOC_P2P_NET_LL_BUFFERS NCCL_LL_THRESHOLD NCCL_TREE_THRESHOLD NCCL_SINGLE_RING_THRESHOLD NCCL_PAT_ENABLE "
     "NCCL_ALLGATHERV_ENABLE NCCL_NET_OVERHEAD NCCL_CTA_POLICY NCCL_CGA_CLUSTER_SIZE NCCL_MEM_SYNC_DOMAIN "
     "NCCL_SET_STACK_SIZE NCCL_L1_SHARED_MEMORY_CARVEOUT NCCL_LAUNCH_MODE NCCL_LAUNCH_ORDER_IMPLICIT "
     "NCCL_LAUNCH_RACE_FATAL NCCL_GRAPH_STREAM_ORDERING NCCL_GRAPH_HELPER_DISABLE NCCL_RUNTIME_CONNECT "
     "NCCL_CONNECT_ROUND_MAX_PEERS NCCL_COMM_SPLIT_SHARE_RESOURCES NCCL_COMM_SHRINK_SHARE_RESOURCES "
     "NCCL_CHECK_POINTERS NCCL_CHECK_MODE NCCL_CHECKS_DISABLE NCCL_WORK_FIFO_BYTES NCCL_WORK_ARGS_BYTES "
     "NCCL_SHADOW_MEMPOOL_MAX_SIZE NCCL_PROGRESS_APPENDOP_FREQ NCCL_PROXY_APPEND_BATCH_SIZE "
     "NCCL_P2P_SCHEDULE_GROUP_SIZE NCCL_P2P_EPOCH_ENABLE NCCL_P2P_MAX_PEERS NCCL_P2P_PER_CHANNEL_NET_BW "
     "NCCL_DEV_API_JIT NCCL_DISABLE_MEM_MANAGER NCCL_SET_CPU_STACK_SIZE"},
    {"registration and windows",
     "NCCL_GRAPH_REGISTER NCCL_LOCAL_REGISTER NCCL_LEGACY_CUDA_REGISTER NCCL_SINGLE_PROC_MEM_REG_ENABLE "
     "NCCL_MULTI_SEGMENT_REGISTER NCCL_ELASTIC_BUFFER_REGISTER NCCL_WIN_ENABLE NCCL_WIN_STRIDE NCCL_SYM_* "
     "NCCL_LSA_TEAM_SIZE"},
    {"transports within a node",
     "NCCL_P2P_DISABLE NCCL_P2P_LEVEL NCCL_P2P_DIRECT_DISABLE NCCL_P2P_READ_ENABLE NCCL_P2P_USE_CUDA_MEMCPY "
     "NCCL_IGNORE_DISABLED_P2P NCCL_SHM_DISABLE NCCL_SHM_USE_CUDA_MEMCPY NCCL_SHM_MEMCPY_MODE NCCL_SHM_LOCALITY "
     "NCCL_CUMEM_ENABLE NCCL_CUMEM_HOST_ENABLE NCCL_NVLS_ENABLE NCCL_NVLS_NCHANNELS NCCL_NVB_DISABLE "
     "NCCL_NVB_PRECONNECT NCCL_MNNVL_* NCCL_GDRCOPY_*"},
    {"networks and plugins",
     "NCCL_NET NCCL_NET_PLUGIN NCCL_NET_PLUGIN_REF_COUNT NCCL_NET_GDR_LEVEL NCCL_NET_GDR_READ NCCL_NET_GDR_C2C "
     "NCCL_NET_FORCE_FLUSH NCCL_NET_MERGE_LEVEL NCCL_NET_FORCE_MERGE NCCL_NET_MERGE_POLICY NCCL_NET_SHARED_BUFFERS "
     "NCCL_NET_SHARED_COMMS NCCL_NET_DISABLE_INTRA NCCL_NET_OPTIONAL_RECV_COMPLETION NCCL_TUNER_PLUGIN "
     "NCCL_TUNER_CONFIG_FILE NCCL_PROFILER_PLUGIN NCCL_PROFILE_* NCCL_ENV_PLUGIN NCCL_INSPECTOR_* NCCL_IB_DISABLE "
     "NCCL_IB_HCA NCCL_IB_GID_INDEX NCCL_IB_ADDR_FAMILY NCCL_IB_ADDR_RANGE NCCL_IB_ROCE_VERSION_NUM "
     "NCCL_IB_ROUTABLE_FLID_GID_INDEX NCCL_IB_TIMEOUT NCCL_IB_RETRY_CNT NCCL_IB_SL NCCL_IB_TC NCCL_IB_FIFO_TC "
     "NCCL_IB_PKEY NCCL_IB_QPS_PER_CONNECTION NCCL_IB_SPLIT_DATA_ON_QPS NCCL_IB_AR_THRESHOLD "
     "NCCL_IB_ADAPTIVE_ROUTING NCCL_IB_ECE_ENABLE NCCL_IB_OOO_RQ NCCL_IB_USE_INLINE NCCL_IB_PCI_RELAXED_ORDERING "
     "NCCL_IB_MERGE_NICS NCCL_IB_MERGE_VFS NCCL_IB_RETURN_ASYNC_EVENTS NCCL_IB_MQP_RETRY_* NCCL_IB_RESILIENCY_* "
     "NCCL_IB_SUBNET_AWARE_ROUTING NCCL_IB_SUBNET_PREFIX_LEN NCCL_IB_DATA_DIRECT NCCL_IB_DEVICE_PCI_ORDER "
     "NCCL_IB_QUERY_PORT_SPEED NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS NCCL_IB_RECEIVER_SIDE_MATCHING_SCHEME "
     "NCCL_IB_WARN_RAIL_LOCAL NCCL_IB_GDR_LEVEL NCCL_IB_CUDA_SUPPORT NCCL_IBVERBS_LIB NCCL_GDR_FLUSH_DISABLE "
     "NCCL_DMABUF_ENABLE "
     "NCCL_CROSS_NIC NCCL_NETDEVS_POLICY NCCL_PXN_DISABLE NCCL_P2P_PXN_LEVEL NCCL_PXN_C2C NCCL_IGNORE_NET_MISMATCH "
     "NCCL_IGNORE_COLLNET_MISMATCH NCCL_COLLNET_ENABLE NCCL_COLLNET_NODE_THRESHOLD NCCL_GIN_* NCCL_RMA_* "
     "NCCL_NUM_RMA_CTX NCCL_GDAKI_* NCCL_UCX_* NCCL_SHARP_* NCCL_GPUDIRECTTCPX_* NCCL_FASTRAK_*"},
    {"health service", "NCCL_RAS_ENABLE NCCL_RAS_ADDR NCCL_RAS_TIMEOUT_FACTOR"},
    {"names of others that begin alike",
     "NCCL_VERSION NCCL_ASYNC_ERROR_HANDLING NCCL_BLOCKING_WAIT NCCL_DESYNC_DEBUG NCCL_TESTS_* NCCL_HOME NCCL_ROOT "
     "NCCL_ROOT_DIR NCCL_DIR NCCL_PATH NCCL_LIB_DIR NCCL_LIBRARY NCCL_INCLUDE_DIR NCCL_INCLUDE_DIRS NCCL_LIBRARIES "
     "NCCL_SOURCE_DIR NCCL_EXT_DIR TALARIA_PRESET TALARIA_JOBS TALARIA_NVCC TALARIA_CUDA_ARCHITECTURES "
     "TALARIA_TEST_*"},
};

bool matches(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  pattern.remove_suffix(1);
  return name.starts_with(pattern);
}

// Levenshtein's distance: letters to change, insert or delete.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

}  // namespace

std::span<const VariableGroup> variables_without_effect() { return kWithoutEffect; }

std::vector<std::string> names_of(const VariableGroup& group) {
  std::vector<std::string> names = split(group.names, ' ');
  std::erase_if(names, [](const std::string& name) { return find_config_row(name) != nullptr; });
  return names;
}

bool is_known_variable(std::string_view name) {
  if (find_config_row(name) != nullptr) return true;
  for (const VariableGroup& group : kWithoutEffect) {
    for (const std::string& pattern : split(group.names, ' ')) {
      if (matches(pattern, name)) return true;
    }
  }
  return false;
}

std::string nearest_variable(std::string_view name) {
  std::string nearest;
  size_t least = std::max<size_t>(name.size() / 4, 2) + 1;
  const auto consider = [&](const std::string& candidate) {
    const size_t changes = distance(name, candidate);
    if (changes >= least) return;
    least = changes;
    nearest = candidate;
  };
  for (const ConfigRow& row : config_rows()) consider(row.name);
  for (const VariableGroup& group : kWithoutEffect) {
    for (const std::string& known : split(group.names, ' ')) {
      if (!known.ends_with('*')) consider(known);
    }
  }
  return nearest;
}

}  // namespace talaria
